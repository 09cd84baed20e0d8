// GPipe: all forwards, then all backwards. Bubble rate (K-1)/(M+K-1) at
// F = I = W, peak M activations. Huang et al., arXiv 1811.06965.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_GPIPE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_GPIPE_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 1.
absl::StatusOr<Schedule> GenerateGPipe(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_GPIPE_H_
