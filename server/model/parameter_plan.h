// Where every parameter of a rank lies in its buffers: a pure function of the
// model, the rank's layers, the optimizer and the backend's packed sizes.
//
// Each version's weight buffer holds the groups one after the other, aligned;
// optimizer state and gradients use the same offsets in buffers of the same
// size. The second gradient of a tied embedding follows the others.
#ifndef PENSTOCK_SERVER_MODEL_PARAMETER_PLAN_H_
#define PENSTOCK_SERVER_MODEL_PARAMETER_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/device/ops.h"
#include "server/model/model_config.h"
#include "server/model/optimizer.h"
#include "server/model/parameter_spec.h"

namespace penstock::server::model {

// What a rank does for a tied embedding; see parameters.h.
enum class TiedRole { kNone, kWhole, kEmbedding, kHead };

// Bytes of everything that a ParameterStore allocates.
struct ParameterMemory {
  int64_t weights = 0;    // Both versions.
  int64_t packed = 0;     // The backend's packed forms.
  int64_t gradients = 0;  // With the second one of a tied embedding.
  int64_t optimizer = 0;  // Both versions.
  int64_t step = 0;       // Update scalars and sums of squares, device side.
  int64_t pinned = 0;     // Pinned host memory: the same for the host, and a
                          // staging buffer of the largest tensor.

  int64_t device_bytes() const {
    return weights + packed + gradients + optimizer + step;
  }
};

// A parameter that has values on this rank: owned, or a tied head's copy.
struct HeldParameter {
  ParameterSpec spec;
  int64_t offset = 0;  // In a version's buffers and the gradient buffer.
  bool owned = true;
};

// A group as a layer uses it.
struct PlacedGroup {
  device::Shape shape;
  device::WeightLayout layout = device::WeightLayout::kInOut;
  int64_t value = 0;     // Offset in a version's weight buffer.
  int64_t gradient = 0;  // Offset in the gradient buffer.
  int64_t packed = 0;    // Offset in the packed buffer.
  int64_t packed_bytes = 0;
};

// Immutable once made.
struct ParameterPlan {
  TiedRole tied_role = TiedRole::kNone;
  std::vector<HeldParameter> held;  // Canonical order.
  std::vector<PlacedGroup> groups;
  // Indices into groups by the pipeline's layer; empty: not on this rank.
  std::vector<std::vector<int>> layer_groups;
  device::Shape tied_shape;         // (vocab, width)
  int64_t tied_head_gradient = -1;  // Offset; -1: the role has none.
  int64_t tied_sum = -1;            // Offset of the embedding's gradient.
  int64_t version_bytes = 0;        // Weights of one version.
  ParameterMemory memory;
};

// `ranges` ascend. `ops` only answers packed sizes.
ParameterPlan PlanParameters(const device::Ops& ops, const ModelConfig& config,
                             absl::Span<const LayerRange> ranges,
                             const OptimizerConfig& optimizer);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_PARAMETER_PLAN_H_
