#include "coordinator/schedule/naive.h"

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateNaive(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("naive", shape, 1));
  Schedule schedule = EmptySchedule(
      "naive", LoopPlacement({.ranks = shape.ranks}), shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(2 * shape.micro_batches);
    for (int m = 0; m < shape.micro_batches; ++m) {
      order.push_back({Op::kForward, r, m});
      order.push_back({Op::kBackward, r, m});
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
