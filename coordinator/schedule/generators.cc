#include "coordinator/schedule/generators.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/dualpipe_v.h"
#include "coordinator/schedule/gpipe.h"
#include "coordinator/schedule/interleaved.h"
#include "coordinator/schedule/looped_bfs.h"
#include "coordinator/schedule/naive.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/one_forward_one_backward.h"
#include "coordinator/schedule/v_half.h"
#include "coordinator/schedule/v_min.h"
#include "coordinator/schedule/zb1p_interleaved.h"
#include "coordinator/schedule/zb_h1.h"
#include "coordinator/schedule/zb_h2.h"
#include "coordinator/schedule/zb_v.h"

namespace penstock::coordinator::schedule {

std::vector<absl::string_view> GeneratorNames() {
  std::vector<absl::string_view> names;
  for (const NamedSchedule& row : kNamedSchedules) {
    names.push_back(row.name);
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
    case ScheduleKind::kInterleaved:
      return GenerateInterleaved(shape);
    case ScheduleKind::kLoopedBfs:
      return GenerateLoopedBfs(shape);
    case ScheduleKind::kZbH1:
      return GenerateZbH1(shape);
    case ScheduleKind::kZbH2:
      return GenerateZbH2(shape);
    case ScheduleKind::kZb1pInterleaved:
      return GenerateZb1pInterleaved(shape);
    case ScheduleKind::kZbV:
      return GenerateZbV(shape);
    case ScheduleKind::kVHalf:
      return GenerateVHalf(shape);
    case ScheduleKind::kVMin:
      return GenerateVMin(shape);
    case ScheduleKind::kDualpipeV:
      return GenerateDualpipeV(shape);
    case ScheduleKind::kAuto:
      return GenerateAuto(shape);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("there is no schedule \"", name, "\"; there are ",
                       absl::StrJoin(GeneratorNames(), ", ")));
  }
}

}  // namespace penstock::coordinator::schedule
