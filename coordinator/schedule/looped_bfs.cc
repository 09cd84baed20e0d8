#include "coordinator/schedule/looped_bfs.h"

#include "common/status/status_macros.h"
#include "coordinator/schedule/looped_order.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateLoopedBfs(const Shape& shape) {
  RETURN_IF_ERROR(CheckShape("looped-bfs", shape));
  const LoopedOrder looped = LoopedOrder::OneGroup(shape);
  Schedule schedule = EmptySchedule(
      "looped-bfs",
      LoopPlacement({.ranks = shape.ranks, .chunks = shape.chunks}),
      shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(2 * looped.count());
    for (int i = 0; i < looped.count(); ++i) {
      order.push_back(looped.Forward(r, i));
    }
    for (int i = 0; i < looped.count(); ++i) {
      order.push_back(looped.Backward(Op::kBackward, r, i));
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
