// Interleaved 1F1B: v chunks a rank, micro-batches in groups of N
// (looped_order.h). Warm-up min(2(K-r-1) + (v-1)N, vM) forwards, then one
// forward and one backward in turn, then the backwards that are left. Bubble
// (K-1)(F+B)/v, and (v-1)(K-M)(F+B)/v more where M < K; peak min(vM, (v-1)N +
// 2(K-1-r) + 1) chunk activations on rank r. Narayanan et al., arXiv
// 2104.04473.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_INTERLEAVED_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_INTERLEAVED_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// InvalidArgument: a shape that CheckShape refuses, or M mod max(1, M//K) != 0.
absl::StatusOr<Schedule> GenerateInterleaved(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_INTERLEAVED_H_
