// Schedules by the names that a job file gives them. Each generator is one free
// function in a file of its own. (`auto` is for equal stages here; for measured
// times and limits: auto_schedule.h.)
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_GENERATORS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_GENERATORS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Names that Generate knows, in the order of the documentation.
std::vector<absl::string_view> GeneratorNames();

// Makes the schedule `name` of that shape.
// InvalidArgument: unknown name (lists them), or a shape for which the schedule
// has no meaning (the rule and the numbers).
absl::StatusOr<Schedule> Generate(absl::string_view name, const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_GENERATORS_H_
