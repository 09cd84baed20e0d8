// LayerNorm and RMSNorm; formulas in ops.h. Row sums are made in f64.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_LAYER_NORM_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_LAYER_NORM_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void LayerNormForward(const LayerNormForwardArgs& args);
void LayerNormBackwardInput(const LayerNormBackwardInputArgs& args);
void LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_LAYER_NORM_H_
