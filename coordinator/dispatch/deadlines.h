// The deadlines of a job's commands: constants that are right for small models,
// longer where the plan or the clock says that a command honestly takes longer.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_DEADLINES_H_
#define PENSTOCK_COORDINATOR_DISPATCH_DEADLINES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/dispatch/options.h"
#include "coordinator/planner/plan.h"

namespace penstock::coordinator::dispatch {

// The rules between the options. InvalidArgument names both values and the
// rule: every one above 0; lease at least five heartbeats; command_deadline
// below stall_deadline, whose error says less; assembly_stall_deadline at most
// assembly_deadline.
absl::Status CheckDeadlines(const Options& options);

// How long a command may be at the head of a rank's queue. With few ranks busy
// (naive) the last waits for nearly the whole step, and ranks may share a core:
// so it is options.command_deadline, or the whole step with its evaluation at
// the lowest speed that is expected of the device, in whole seconds, whichever
// is longer.
absl::Duration CommandDeadline(const Options& options,
                               const planner::Plan& plan,
                               const std::string& device_kind,
                               int evaluation_micro_batches);

// How long nothing may move in a running job: options.stall_deadline, 1.5 times
// `command_deadline`, or 4 times the slowest step that was measured, whichever
// is longest. (A stage itself allows 3 times its slowest command.)
absl::Duration StallDeadline(const Options& options,
                             absl::Duration command_deadline,
                             absl::Duration slowest_step);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_DEADLINES_H_
