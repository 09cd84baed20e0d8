// What PlanService answers, without gRPC: schedules generated, proved, lowered
// and simulated by the code that every job goes through.
#ifndef PENSTOCK_COORDINATOR_SERVICE_SCHEDULE_ANSWERS_H_
#define PENSTOCK_COORDINATOR_SERVICE_SCHEDULE_ANSWERS_H_

#include "absl/status/statusor.h"
#include "penstock/v1/plan_service.pb.h"

namespace penstock::coordinator::service {

// InvalidArgument with the rule and the numbers, also when the order does not
// fit the memory limit.
absl::StatusOr<v1::SimulateScheduleResponse> SimulateSchedule(
    const v1::SimulateScheduleRequest& request);

// InvalidArgument with the grid and the first violation.
absl::StatusOr<v1::VerifyScheduleResponse> VerifySchedule(
    const v1::VerifyScheduleRequest& request);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_SCHEDULE_ANSWERS_H_
