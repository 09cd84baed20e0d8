// V-Half: about half of 1F1B's memory on every rank, (K+2)//2 stages' (twice as
// many chunk activations), for about two thirds of its bubble: a pattern on the
// V placement (v_pattern.h) in which forwards go down the ranks at two slots a
// rank and up at one. Qi et al., arXiv 2405.15362.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_V_HALF_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_V_HALF_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 2.
absl::StatusOr<Schedule> GenerateVHalf(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_V_HALF_H_
