// 1F1B (PipeDream-flush): min(K-r-1, M) warm-up forwards, then one forward and
// one backward in turn, then the backwards that are left. Bubble as GPipe, peak
// min(K-r, M) activations. Narayanan et al., arXiv 2006.09503.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ONE_FORWARD_ONE_BACKWARD_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ONE_FORWARD_ONE_BACKWARD_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 1.
absl::StatusOr<Schedule> GenerateOneForwardOneBackward(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ONE_FORWARD_ONE_BACKWARD_H_
