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

Placement PlacementOf(const NamedSchedule& row, const RankShape& shape) {
  return row.v_shaped ? VPlacement(shape) : LoopPlacement(shape);
}

std::optional<ClosedForm> ClosedFormOf(absl::string_view name,
                                       const Shape& shape) {
  const NamedSchedule* const row = FindSchedule(name);
  if (row == nullptr ||
      (row->fixed_chunks.has_value() && row->fixed_chunks != shape.chunks)) {
    return std::nullopt;
  }
  const double k = shape.ranks;
  const double v = shape.chunks;
  const double m = shape.micro_batches;
  // Bubble and work in the same unit.
  const auto form = [](absl::string_view formula, double bubble, double work) {
    return ClosedForm{.formula = std::string(formula),
                      .bubble_rate = bubble / (work + bubble)};
  };
  switch (row->value) {
    case ScheduleKind::kNaive:
      return ClosedForm{.formula = "1 − 1/K", .bubble_rate = 1 - 1 / k};
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1F1B:
      return form("(K−1)/(M+K−1)", k - 1, m);
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kLoopedBfs:
      if (m < k) {
        return form("1 − vM/(vM+K−1+(v−1)(K−M))", k - 1 + (v - 1) * (k - m),
                    v * m);
      }
      if (row->value == ScheduleKind::kInterleaved &&
          shape.micro_batches % shape.ranks != 0) {
        return std::nullopt;
      }
      return form("(K−1)/(vM+K−1)", k - 1, v * m);
    case ScheduleKind::kZbH1:
      if (m < k) return form("1 − 3M/(2M+2K−1)", 2 * k - 1 - m, 3 * m);
      return form("(K−1)/(3M+K−1)", k - 1, 3 * m);
    case ScheduleKind::kZb1pInterleaved:
      if (m < k) return std::nullopt;
      return form("(K−1)/(3vM+K−1)", k - 1, 3 * v * m);
    case ScheduleKind::kZbH2:
      if (m < 2 * k - 1) return std::nullopt;
      return form("(K−1)/(3M+K−1)", k - 1, 3 * m);
    case ScheduleKind::kZbV:
      if (m < 2 * k - 1) return std::nullopt;
      return form("(K−1)/(6M+K−1)", k - 1, 6 * m);
    case ScheduleKind::kDualpipeV:
      if (m < 2 * k || k < 2) return std::nullopt;
      return form("K/(6M+K)", k, 6 * m);
    default:
      return std::nullopt;
  }
}

}  // namespace penstock::coordinator::schedule
