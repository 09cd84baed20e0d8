// What a request of PlanService asks to be simulated: the order that it names,
// sends or wants searched, proved and lowered for its times and memory.
#ifndef PENSTOCK_COORDINATOR_SERVICE_PLANNED_SCHEDULE_H_
#define PENSTOCK_COORDINATOR_SERVICE_PLANNED_SCHEDULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/schedule.h"
#include "penstock/v1/plan_service.pb.h"

namespace penstock::coordinator::service {

// A schedule, and what was given and what came out when it was lowered.
struct PlannedSchedule {
  schedule::Schedule plan;
  schedule::LoweringOptions options;
  schedule::LoweredProgram program;
  std::string found;  // Of auto: what the order is, for people.
};

// InvalidArgument with the rule and the numbers, also when the order does not
// fit the memory limit, and with the grid and the first violation of a file.
absl::StatusOr<PlannedSchedule> PlanSchedule(
    const v1::SimulateScheduleRequest& request);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_PLANNED_SCHEDULE_H_
