#include "coordinator/dispatch/job_plan.h"

#include <utility>

#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/inputs.h"
#include "coordinator/dispatch/message_size.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/plan.h"

namespace penstock::coordinator::dispatch {
namespace {

absl::StatusOr<planner::Plan> PlanThatFits(
    const planner::PlanRequest& request) {
  RETURN_IF_ERROR(CheckStepFits(request));
  ASSIGN_OR_RETURN(planner::Plan plan, planner::MakePlan(request));
  RETURN_IF_ERROR(CheckFits(request, plan));
  return plan;
}

}  // namespace

absl::StatusOr<PlannedJob> PlanJob(NewJob job) {
  absl::StatusOr<planner::PlanRequest> request = PlanRequestOf(job);
  if (!request.ok()) return PlaceRefusal(job, request.status());
  absl::StatusOr<planner::Plan> plan = PlanThatFits(*request);
  if (!plan.ok()) return PlaceRefusal(job, plan.status());
  absl::StatusOr<planner::StageMap> map = planner::MapForChecks(*request);
  if (!map.ok()) return PlaceRefusal(job, map.status());
  return PlannedJob{.job = std::move(job),
                    .request = *std::move(request),
                    .map = *std::move(map),
                    .bubble_rate = plan->predicted.bubble_rate};
}

PlanMade MakePlanOf(const MakePlan& action) {
  return {.job_id = action.job_id, .plan = planner::MakePlan(action.request)};
}

}  // namespace penstock::coordinator::dispatch
