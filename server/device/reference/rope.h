// Rotary position embedding; formula in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_ROPE_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_ROPE_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void Rope(const RopeArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_ROPE_H_
