#include "coordinator/schedule/generators.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/schedule/gpipe.h"
#include "coordinator/schedule/naive.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/one_forward_one_backward.h"

namespace penstock::coordinator::schedule {

std::vector<absl::string_view> GeneratorNames() {
  std::vector<absl::string_view> names;
  for (const NamedSchedule& row : kNamedSchedules) {
    if (row.built) names.push_back(row.name);
  }
  return names;
}

absl::StatusOr<Schedule> Generate(absl::string_view name, const Shape& shape) {
  const NamedSchedule* const row = FindSchedule(name);
  switch (row == nullptr ? ScheduleKind::kFile : row->value) {
    case ScheduleKind::kNaive:
      return GenerateNaive(shape);
    case ScheduleKind::kGpipe:
      return GenerateGPipe(shape);
    case ScheduleKind::k1F1B:
      return GenerateOneForwardOneBackward(shape);
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          row == nullptr ? "there is no schedule \""
                         : "not built yet: schedule \"",
          name, "\"; there are ", absl::StrJoin(GeneratorNames(), ", ")));
  }
}

}  // namespace penstock::coordinator::schedule
