// Looped breadth-first: v chunks a rank, all forwards chunk by chunk, then all
// backwards. Bubble as interleaved where M >= K, and (v-1)(K-M)(F+B)/v more
// below; peak vM chunk activations. Lamy-Poirier, arXiv 2211.05953.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_BFS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_BFS_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K, v and M. InvalidArgument: a shape that CheckShape refuses.
absl::StatusOr<Schedule> GenerateLoopedBfs(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_BFS_H_
