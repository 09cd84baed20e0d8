#include "coordinator/schedule/gpipe.h"

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateGPipe(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("gpipe", shape, 1));
  Schedule schedule = EmptySchedule(
      "gpipe", LoopPlacement({.ranks = shape.ranks}), shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(2 * shape.micro_batches);
    for (const Op op : {Op::kForward, Op::kBackward}) {
      for (int m = 0; m < shape.micro_batches; ++m) order.push_back({op, r, m});
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
