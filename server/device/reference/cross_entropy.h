// Cross entropy and its gradient; formulas in ops.h. Sums are made in f64.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_CROSS_ENTROPY_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_CROSS_ENTROPY_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void CrossEntropyForward(const CrossEntropyForwardArgs& args);
void CrossEntropyBackward(const CrossEntropyBackwardArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_CROSS_ENTROPY_H_
