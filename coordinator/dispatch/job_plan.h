// The planner's work for jobs. It computes, for seconds of a core where the
// plan is large, so whoever runs the core does it on another thread. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_JOB_PLAN_H_
#define PENSTOCK_COORDINATOR_DISPATCH_JOB_PLAN_H_

#include "absl/status/statusor.h"
#include "coordinator/dispatch/actions.h"

namespace penstock::coordinator::dispatch {

// What goes before Core::CreateJob: a plan for stages that are all alike.
// InvalidArgument: what only schedule and planner find, or what would not fit
// into messages (message_size.h), at the key's place.
absl::StatusOr<PlannedJob> PlanJob(NewJob job);

// Carries the action out.
PlanMade MakePlanOf(const MakePlan& action);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_JOB_PLAN_H_
