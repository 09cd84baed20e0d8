// ZB-V: ZB-H2's steady state with two chunks on the V placement, whose first
// and last stage share rank 0: no span bubble where M >= 2K-1, makespan
// 3M+(K-1)/2 at F = I = W, with 1F1B's memory on every rank: 2K chunk
// activations, K stages'. Qi et al., arXiv 2405.15362.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ZB_V_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ZB_V_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M; below M = 2K-1 the order is that of 2K-1 without the
// micro-batches that there are not. InvalidArgument unless shape.chunks is 2.
absl::StatusOr<Schedule> GenerateZbV(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ZB_V_H_
