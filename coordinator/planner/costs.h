// What the operations of a stage cost for one micro-batch. Analytic: the
// floating-point operations of its layers, counted from shapes, which the
// partitioner balances, and on which the simulator's prediction rests.
// Modelled: seconds, where the device takes the times that it is told.
#ifndef PENSTOCK_COORDINATOR_PLANNER_COSTS_H_
#define PENSTOCK_COORDINATOR_PLANNER_COSTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::planner {

// Operations of one layer for one micro-batch.
struct LayerCost {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double total() const { return forward + backward_input + backward_weight; }
};

// Of each kind of layer. With full recompute each layer's forward is done once
// more, as a part of its backward_input.
struct ModelCosts {
  LayerCost embedding;
  LayerCost block;
  LayerCost head;
};
ModelCosts AnalyticCosts(const ModelShape& model, const BatchShape& batch,
                         Recompute recompute);

// Times of stages with these layers, in operations; transfers take no time.
schedule::Costs StageCosts(const ModelCosts& costs,
                           absl::Span<const StageLayers> stages);

// Times of a virtual stage, and whether I and W are known apart.
struct ModelledStage {
  schedule::StageTimes times;
  bool split = true;
};

// The times, in seconds, that the device "virtual" is to take.
struct ModelledTimes {
  schedule::RankTimes rank;           // Each of its stages takes its part.
  std::vector<ModelledStage> stages;  // Where not empty: of each one.
  double seconds_per_byte = 0;        // Of a message, besides rank.transfer.
};

// InvalidArgument with a key path (refusal.h): virtual.profile, of another
// number of stages.
absl::StatusOr<schedule::Costs> ModelledCosts(const ModelledTimes& times,
                                              const schedule::RankShape& shape,
                                              const ModelShape& model,
                                              const BatchShape& batch);

// InvalidArgument likewise: `order` has an I or W of a stage whose profile does
// not tell them apart.
absl::Status CheckSplit(const ModelledTimes& times,
                        const schedule::Schedule& order);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_COSTS_H_
