#include "coordinator/schedule/named_schedules.h"

namespace penstock::coordinator::schedule {

const NamedSchedule* FindSchedule(absl::string_view name) {
  for (const NamedSchedule& row : kNamedSchedules) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const NamedSchedule* FindSchedule(ScheduleKind kind) {
  for (const NamedSchedule& row : kNamedSchedules) {
    if (row.value == kind) return &row;
  }
  return nullptr;
}

std::optional<ClosedForm> ClosedFormOf(absl::string_view name,
                                       const Shape& shape) {
  const NamedSchedule* const row = FindSchedule(name);
  if (row == nullptr) return std::nullopt;
  const double k = shape.ranks;
  const double m = shape.micro_batches;
  switch (row->value) {
    case ScheduleKind::kNaive:
      return ClosedForm{.formula = "1 − 1/K", .bubble_rate = 1 - 1 / k};
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1F1B:
      return ClosedForm{.formula = "(K−1)/(M+K−1)",
                        .bubble_rate = (k - 1) / (m + k - 1)};
    default:
      return std::nullopt;
  }
}

}  // namespace penstock::coordinator::schedule
