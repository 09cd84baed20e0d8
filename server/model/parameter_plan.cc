#include "server/model/parameter_plan.h"

#include <algorithm>

#include "common/log/log.h"
#include "server/device/tensor.h"
#include "server/model/layout.h"

namespace penstock::server::model {
namespace {

constexpr int64_t kF32Bytes = 4, kF64Bytes = 8;

int64_t F32Bytes(const device::Shape& shape) {
  return shape.elements() * kF32Bytes;
}

// Places layer after layer.
class Planner {
 public:
  Planner(const device::Ops& ops, const ModelConfig& config,
          ParameterPlan& plan)
      : ops_(ops), config_(config), plan_(plan) {
    plan_.layer_groups.resize(config.layers + 2);
  }

  void Place(int64_t layer, const std::vector<ParameterGroup>& groups) {
    CHECK(plan_.layer_groups[layer].empty()) << "layer twice: " << layer;
    for (const ParameterGroup& group : groups) {
      plan_.layer_groups[layer].push_back(
          static_cast<int>(plan_.groups.size()));
      plan_.groups.push_back(Placed(group));
    }
  }

  void PlaceRange(const LayerRange& range) {
    if (range.embedding) {
      Place(0, EmbeddingParameters(config_));
      embedding_group_ = plan_.layer_groups[0].front();
    }
    for (int64_t b = range.first_block; b < range.end_block; ++b) {
      Place(1 + b, BlockParameters(config_, b));
    }
    if (!range.head) return;
    Place(1 + config_.layers, HeadParameters(config_));
    if (config_.tied) head_group_ = plan_.layer_groups.back().back();
  }

  // Once all ranges are placed: the tied embedding's second gradient.
  void FinishTied() {
    if (!config_.tied) return;
    if (embedding_group_ < 0 && head_group_ < 0) return;
    plan_.tied_shape = device::Shape({config_.vocab, config_.width});
    if (embedding_group_ < 0) {
      plan_.tied_role = TiedRole::kHead;
      plan_.tied_head_gradient = plan_.groups[head_group_].gradient;
      return;
    }
    plan_.tied_role = head_group_ < 0 ? TiedRole::kEmbedding : TiedRole::kWhole;
    plan_.tied_sum = plan_.groups[embedding_group_].gradient;
    plan_.tied_head_gradient = gradient_bytes_;
    gradient_bytes_ += Aligned(F32Bytes(plan_.tied_shape));
    if (head_group_ >= 0) {
      plan_.groups[head_group_].gradient = plan_.tied_head_gradient;
    }
  }

  int64_t gradient_bytes() const { return gradient_bytes_; }
  int64_t packed_bytes() const { return packed_bytes_; }

 private:
  PlacedGroup Placed(const ParameterGroup& group) {
    PlacedGroup placed{.shape = group.shape, .layout = group.layout};
    if (group.tied_head && embedding_group_ >= 0) {
      // The embedding's values; FinishTied() places the gradient.
      placed.value = plan_.groups[embedding_group_].value;
    } else {
      placed.value = placed.gradient = plan_.version_bytes;
      int64_t offset = plan_.version_bytes;
      for (const ParameterSpec& spec : group.members) {
        plan_.held.push_back(
            {.spec = spec, .offset = offset, .owned = !group.tied_head});
        offset += F32Bytes(spec.shape);
      }
      plan_.version_bytes += Aligned(F32Bytes(group.shape));
      gradient_bytes_ += Aligned(F32Bytes(group.shape));
    }
    if (group.product) {
      const bool in_out = group.layout == device::WeightLayout::kInOut;
      const int64_t rows = group.shape.dim(0), columns = group.shape.dim(1);
      placed.packed_bytes = ops_.PackedWeightBytes(in_out ? rows : columns,
                                                   in_out ? columns : rows);
      placed.packed = packed_bytes_;
      packed_bytes_ += Aligned(placed.packed_bytes);
    }
    return placed;
  }

  const device::Ops& ops_;
  const ModelConfig& config_;
  ParameterPlan& plan_;
  int embedding_group_ = -1;  // The token table, where it is here.
  int head_group_ = -1;       // The tied head's use of it.
  int64_t gradient_bytes_ = 0;
  int64_t packed_bytes_ = 0;
};

}  // namespace

ParameterPlan PlanParameters(const device::Ops& ops, const ModelConfig& config,
                             absl::Span<const LayerRange> ranges,
                             const OptimizerConfig& optimizer) {
  ParameterPlan plan;
  Planner planner(ops, config, plan);
  for (const LayerRange& range : ranges) planner.PlaceRange(range);
  planner.FinishTied();
  // A tied head's copy has the embedding's index: first.
  std::sort(plan.held.begin(), plan.held.end(),
            [](const HeldParameter& a, const HeldParameter& b) {
              return a.spec.index < b.spec.index;
            });
  int64_t owned = 0, largest = 0;
  for (const HeldParameter& held : plan.held) {
    owned += held.owned ? 1 : 0;
    largest = std::max(largest, F32Bytes(held.spec.shape));
  }
  const int64_t scalars = Aligned(device::kUpdateScalars * kF32Bytes);
  const int64_t sums = Aligned(owned * kF64Bytes);
  plan.memory = {
      .weights = 2 * plan.version_bytes,
      .packed = planner.packed_bytes(),
      .gradients = planner.gradient_bytes(),
      .optimizer = 2 * optimizer.state_tensors() * plan.version_bytes,
      .step = scalars + sums,
      .pinned = 2 * scalars + sums + Aligned(largest)};
  return plan;
}

}  // namespace penstock::server::model
