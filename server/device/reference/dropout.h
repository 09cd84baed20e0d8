// Dropout; formula in ops.h, generator in philox.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_DROPOUT_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_DROPOUT_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void ApplyDropout(const DropoutArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_DROPOUT_H_
