// Which ops the layers of a rank run, by size.
#ifndef PENSTOCK_SERVER_MODEL_OP_SIZES_H_
#define PENSTOCK_SERVER_MODEL_OP_SIZES_H_

#include "absl/types/span.h"
#include "server/device/ops.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// For Ops::ScratchBytes and Ops::ReserveScratch. `ranges` ascend.
device::OpSizes SizesOfOps(const ModelConfig& model,
                           absl::Span<const LayerRange> ranges,
                           const BatchShape& shape);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_OP_SIZES_H_
