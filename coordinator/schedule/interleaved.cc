#include "coordinator/schedule/interleaved.h"

#include <algorithm>

#include "common/status/status_macros.h"
#include "coordinator/schedule/looped_order.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateInterleaved(const Shape& shape) {
  ASSIGN_OR_RETURN(const LoopedOrder looped,
                   LoopedOrder::Create("interleaved", shape));
  Schedule schedule = EmptySchedule(
      "interleaved",
      LoopPlacement({.ranks = shape.ranks, .chunks = shape.chunks}),
      shape.micro_batches);
  const int count = looped.count();
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(2 * count);
    const int warm_up = std::min(
        2 * (shape.ranks - r - 1) + (shape.chunks - 1) * looped.group(), count);
    for (int i = 0; i < warm_up; ++i) order.push_back(looped.Forward(r, i));
    for (int i = 0; i < count; ++i) {
      if (const int next = warm_up + i; next < count) {
        order.push_back(looped.Forward(r, next));
      }
      order.push_back(looped.Backward(Op::kBackward, r, i));
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
