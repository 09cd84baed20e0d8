// naive: one micro-batch in flight, F0 B0 F1 B1 ... on every rank. Makespan
// M*K*(F+B), peak 1. What a model cut in pieces does without a pipeline.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_NAIVE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_NAIVE_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 1.
absl::StatusOr<Schedule> GenerateNaive(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_NAIVE_H_
