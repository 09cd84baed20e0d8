// Products with weights; formulas in ops.h. Every sum runs in ascending order
// of the summed index.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_LINEAR_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_LINEAR_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void LinearForward(const LinearForwardArgs& args);
void LinearBackwardInput(const LinearBackwardInputArgs& args);
void LinearBackwardWeight(const LinearBackwardWeightArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_LINEAR_H_
