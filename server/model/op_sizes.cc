#include "server/model/op_sizes.h"

#include <algorithm>

#include "server/model/parameter_spec.h"

namespace penstock::server::model {
namespace {

void AddProducts(const std::vector<ParameterGroup>& groups, int64_t rows,
                 device::OpSizes& sizes) {
  for (const ParameterGroup& group : groups) {
    if (!group.product) continue;
    const device::Weight weight = {
        .master = device::Tensor(nullptr, device::DType::kF32, group.shape),
        .layout = group.layout};
    sizes.products.push_back({.rows = rows,
                              .in = weight.in(),
                              .out = weight.out(),
                              .layout = group.layout});
  }
}

}  // namespace

device::OpSizes SizesOfOps(const ModelConfig& model,
                           absl::Span<const LayerRange> ranges,
                           const BatchShape& shape) {
  device::OpSizes sizes;
  bool blocks = false;
  for (const LayerRange& range : ranges) {
    if (range.first_block < range.end_block && !blocks) {
      blocks = true;  // All are alike.
      AddProducts(BlockParameters(model, range.first_block), shape.rows(),
                  sizes);
      sizes.attention = {.batch = shape.batch,
                         .seq = shape.seq,
                         .heads = model.heads,
                         .kv_heads = model.kv_heads,
                         .head_dim = model.head_dim};
    }
    if (range.head) {
      AddProducts(HeadParameters(model), shape.rows(), sizes);
      sizes.logit_rows = shape.rows();
    }
  }
  for (const ParameterSpec& spec : OwnedParameters(model, ranges)) {
    sizes.summed_elements =
        std::max(sizes.summed_elements, spec.shape.elements());
  }
  return sizes;
}

}  // namespace penstock::server::model
