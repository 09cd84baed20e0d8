// The verifier's rules for orders once more, as directly as they can be said:
// slow, and of no code of coordinator/schedule's.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_ORDER_RULES_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_ORDER_RULES_H_

#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Invariants 1 to 4 and 6 of docs/schedules.md, whatever the schedule holds.
// With computed capacities, which never deadlock, this is all of it.
bool IsCorrect(const Schedule& schedule);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_ORDER_RULES_H_
