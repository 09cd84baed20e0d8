#include "coordinator/schedule/schedule.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::Status CheckShape(absl::string_view name, const Shape& shape) {
  const struct {
    absl::string_view what;
    int value;
    int64_t most;
  } positive[] = {{"ranks", shape.ranks, kMaxRanks},
                  {"chunks", shape.chunks, kMaxCells},
                  {"micro-batches", shape.micro_batches, kMaxCells}};
  for (const auto& [what, value, most] : positive) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": the number of ",
                                                     what, " is ", value,
                                                     ", must be at least 1"));
    }
    if (value > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": the number of ", what, " is ", value, ", at most ", most));
    }
  }
  const int64_t stages = int64_t{shape.ranks} * shape.chunks;
  if (stages > kMaxCells / shape.micro_batches) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", stages, " stages with ", shape.micro_batches,
        " micro-batches are more than ", kMaxCells, " stage-micro-batches"));
  }
  return absl::OkStatus();
}

absl::Status CheckShapeOfChunks(absl::string_view name, const Shape& shape,
                                int chunks) {
  RETURN_IF_ERROR(CheckShape(name, shape));
  if (shape.chunks != chunks) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", chunks, chunks == 1 ? " chunk" : " chunks",
                     " a rank, chunks is ", shape.chunks));
  }
  return absl::OkStatus();
}

Schedule EmptySchedule(absl::string_view name, Placement placement,
                       int micro_batches) {
  Schedule schedule{.name = std::string(name),
                    .placement = std::move(placement),
                    .micro_batches = micro_batches,
                    .orders = {}};
  schedule.orders.resize(schedule.ranks());
  return schedule;
}

}  // namespace penstock::coordinator::schedule
