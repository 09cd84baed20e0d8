// The JobSpec in the words of the others: of the planner and of the stages.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_SPEC_MESSAGES_H_
#define PENSTOCK_COORDINATOR_DISPATCH_SPEC_MESSAGES_H_

#include "absl/status/statusor.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/planner/plan.h"
#include "coordinator/spec/job_spec.h"
#include "penstock/v1/model.pb.h"

namespace penstock::coordinator::dispatch {

v1::ModelConfig ModelConfigOf(const spec::ModelSpec& model);
v1::OptimizerConfig OptimizerConfigOf(const spec::OptimizerSpec& optimizer);
v1::DataConfig DataConfigOf(const spec::JobSpec& spec);

// What the planner is asked. The sequence length is that of the spec, or the
// model's context while the data have not decided.
// InvalidArgument: a schedule file that is no schedule, at pipeline.schedule; a
// profile that is none, at virtual.profile.
absl::StatusOr<planner::PlanRequest> PlanRequestOf(const NewJob& job);

// What the data have decided since then, in a spec that is resolved: vocabulary
// and sequence length.
void SetDecidedByData(const spec::JobSpec& spec, planner::PlanRequest& request);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_SPEC_MESSAGES_H_
