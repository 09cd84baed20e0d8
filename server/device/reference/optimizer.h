// AdamW, SGD and the sum of squares; formulas in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_OPTIMIZER_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_OPTIMIZER_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void Adamw(const AdamwArgs& args);
void Sgd(const SgdArgs& args);
void SumSquares(const SumSquaresArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_OPTIMIZER_H_
