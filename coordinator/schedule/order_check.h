// The part of verification that needs no messages: invariants 1 to 4 and 6.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ORDER_CHECK_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ORDER_CHECK_H_

#include "absl/status/status.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// InvalidArgument: the first violation with rank, position, command and the
// marked grid. Linear in the number of commands.
absl::Status CheckOrder(const Schedule& schedule);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ORDER_CHECK_H_
