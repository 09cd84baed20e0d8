// Least slot counts that cost no time: docs/schedules.md. Internal to lowering.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_CAPACITY_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_CAPACITY_H_

#include "absl/status/status.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// Sets what a rank's own order decides: every stage's peak_in_flight, `held`,
// the least `slots` for it, and local_gradient_slots. Slot numbers of the steps
// are not touched.
void SetOwnSlots(LoweredProgram* program);

// Raises stages' `slots` and sets edges' `capacity`. REQUIRES: SetOwnSlots has
// run, all sends and receives are numbered, and the schedule passed CheckOrder.
//
// One evaluation with unlimited slots gives the step and when each message is
// needed at the latest for it: by its consumer, or by the next use of its send
// buffer. An edge needs as many slots as messages that must be on the receiver
// then. All are then cut to the least common bound (slots ahead, gradient
// slots) at which the step takes no longer and its span bubble is no larger: at
// most log2(M) more evaluations.
//
// ResourceExhausted: a memory limit leaves no capacities free of deadlock.
absl::Status SetCapacities(LoweredProgram* program, const Costs& costs,
                           const Memory& memory);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_CAPACITY_H_
