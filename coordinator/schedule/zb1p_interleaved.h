// ZB1P interleaved: ZB-H1 with v chunks a rank, micro-batches in groups of N
// (looped_order.h). Bubble (K-1)(F+I-W)/v where M >= K; peak
// min(vM, (v-1)N + K) chunk activations on every rank. Qi et al., arXiv
// 2401.10241, with the chunks of arXiv 2104.04473.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_INTERLEAVED_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_INTERLEAVED_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// InvalidArgument: a shape that CheckShape refuses, or M mod max(1, M//K) != 0.
absl::StatusOr<Schedule> GenerateZb1pInterleaved(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_INTERLEAVED_H_
