// The smallest job that has a bit of everything.
#ifndef PENSTOCK_TESTS_COORDINATOR_PLANNER_TINY_REQUEST_H_
#define PENSTOCK_TESTS_COORDINATOR_PLANNER_TINY_REQUEST_H_

#include "coordinator/planner/plan.h"

namespace penstock::coordinator::planner {

// Six blocks.
inline PlanRequest Tiny(int ranks, int micro_batches) {
  PlanRequest request;
  request.model = {.family = Family::kGpt2,
                   .layers = 6,
                   .width = 16,
                   .heads = 2,
                   .kv_heads = 2,
                   .head_dim = 8,
                   .ffn_width = 64,
                   .context = 8,
                   .vocab = 32};
  request.batch = {.micro_batch = 2, .sequence_length = 8};
  request.ranks = ranks;
  request.micro_batches = micro_batches;
  return request;
}

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_TESTS_COORDINATOR_PLANNER_TINY_REQUEST_H_
