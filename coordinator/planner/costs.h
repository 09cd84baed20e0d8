// Analytic cost of a model's layers: floating-point operations of one
// micro-batch, counted from shapes. What the partitioner balances and the
// simulator's predicted bubble rests on, until times are measured.
#ifndef PENSTOCK_COORDINATOR_PLANNER_COSTS_H_
#define PENSTOCK_COORDINATOR_PLANNER_COSTS_H_

#include "absl/types/span.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/schedule/costs.h"

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

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_COSTS_H_
