// V-Min: about a third of 1F1B's memory on every rank, (K+4)//3 stages' (twice
// as many chunk activations), for about two thirds of its bubble at F = I = W:
// a pattern on the V placement (v_pattern.h) that goes down and up at one slot
// a rank. Where F, I and W differ its slots do not fit each other and ranks
// wait. Qi et al., arXiv 2405.15362.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_V_MIN_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_V_MIN_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 2.
absl::StatusOr<Schedule> GenerateVMin(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_V_MIN_H_
