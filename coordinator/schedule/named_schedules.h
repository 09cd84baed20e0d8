// The schedules that a job file may name: the one table of their words, of how
// many chunks a rank they run, and of where their stages are. Generators are
// found by it (generators.h), and so is what coordinator/spec reads and
// refuses.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_NAMED_SCHEDULES_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_NAMED_SCHEDULES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

enum class ScheduleKind {
  kNaive,
  kGpipe,
  k1F1B,
  kInterleaved,
  kLoopedBfs,
  kZbH1,
  kZbH2,
  kZb1pInterleaved,
  kZbV,
  kVHalf,
  kVMin,
  kDualpipeV,
  kAuto,
  kFile,  // The user's own order, written `file:PATH`: not in the table.
};

struct NamedSchedule {
  ScheduleKind value;
  absl::string_view name;
  // v that it always runs; nullopt: the job file's choice.
  std::optional<int> fixed_chunks;
  // v where nothing is said; nullopt: the planner's choice.
  std::optional<int> default_chunks;
  bool v_shaped = false;  // On the V placement (placement.h), else the loop.
};

// In the order of the documentation.
inline constexpr NamedSchedule kNamedSchedules[] = {
    {ScheduleKind::kNaive, "naive", 1, 1},
    {ScheduleKind::kGpipe, "gpipe", 1, 1},
    {ScheduleKind::k1F1B, "1f1b", 1, 1},
    {ScheduleKind::kInterleaved, "interleaved", std::nullopt, 2},
    {ScheduleKind::kLoopedBfs, "looped-bfs", std::nullopt, 2},
    {ScheduleKind::kZbH1, "zb-h1", 1, 1},
    {ScheduleKind::kZbH2, "zb-h2", 1, 1},
    {ScheduleKind::kZb1pInterleaved, "zb1p-interleaved", std::nullopt, 1},
    {ScheduleKind::kZbV, "zb-v", 2, 2, /*v_shaped=*/true},
    {ScheduleKind::kVHalf, "v-half", 2, 2, /*v_shaped=*/true},
    {ScheduleKind::kVMin, "v-min", 2, 2, /*v_shaped=*/true},
    {ScheduleKind::kDualpipeV, "dualpipe-v", 2, 2,
     /*v_shaped=*/true},
    {ScheduleKind::kAuto, "auto", std::nullopt, std::nullopt},
};

// Null: no such name, or kFile.
const NamedSchedule* FindSchedule(absl::string_view name);
const NamedSchedule* FindSchedule(ScheduleKind kind);

// Where the stages of that schedule are, with shape.chunks a rank. Of auto,
// which finds a placement itself, the loop.
Placement PlacementOf(const NamedSchedule& row, const RankShape& shape);

// What the textbook says of the bubble rate, for stages of equal length,
// F = I = W and transfers that take no time (docs/schedules.md).
struct ClosedForm {
  std::string formula;  // "(K−1)/(M+K−1)"
  double bubble_rate = 0;
};
// Nothing where there is no closed form: outside its domain of K, v and M too.
// REQUIRES: a shape that CheckShape takes.
std::optional<ClosedForm> ClosedFormOf(absl::string_view name,
                                       const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_NAMED_SCHEDULES_H_
