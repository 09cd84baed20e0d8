// Which blocks each virtual stage holds.
#ifndef PENSTOCK_COORDINATOR_PLANNER_PARTITIONER_H_
#define PENSTOCK_COORDINATOR_PLANNER_PARTITIONER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/planner/costs.h"
#include "coordinator/planner/model_shape.h"

namespace penstock::coordinator::planner {

// Blocks of each of `stages` virtual stages such that the largest stage's cost
// (embedding and head included) is the least possible, and among those the sum
// of squares of the stages' costs. Exact: blocks cost the same, so giving each
// to the cheapest stage is optimal in both. Where stages cost the same the
// later one gets the block: it holds fewer activations.
//
// Only the first and the last may have 0 blocks. InvalidArgument at
// pipeline.stages: stages < 1, or more than blocks + 2.
absl::StatusOr<std::vector<int64_t>> BalancedPartition(const ModelCosts& costs,
                                                       int64_t blocks,
                                                       int stages);

// A list that was given. InvalidArgument at pipeline.partition, or at the
// element: another number of stages, another sum than `blocks` (no block is
// ever dropped), less than 0, or 0 inside.
absl::Status CheckPartition(absl::Span<const int64_t> partition, int64_t blocks,
                            int stages);

// The layers of each stage. REQUIRES: a partition that CheckPartition accepts.
std::vector<StageLayers> LayersOfStages(absl::Span<const int64_t> partition);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_PARTITIONER_H_
