// ZB-H2: min(2(K-r)-1, M) forwards to warm up, then I, the W of 2r I before and
// F in turn. Ranks start later and stop later by the same: no bubble between a
// rank's own first and last command where M >= 2K-1 (2K-1-M where K <= M), but
// until the barrier the step is ZB-H1's, 3M+K-1 at F = I = W. Peak 2K-1
// activations from F to W. Qi et al., arXiv 2401.10241.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ZB_H2_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ZB_H2_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 1.
absl::StatusOr<Schedule> GenerateZbH2(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ZB_H2_H_
