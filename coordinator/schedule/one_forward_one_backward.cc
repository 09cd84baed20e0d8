#include "coordinator/schedule/one_forward_one_backward.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateOneForwardOneBackward(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("1f1b", shape, 1));
  const int micro_batches = shape.micro_batches;
  Schedule schedule = EmptySchedule(
      "1f1b", LoopPlacement({.ranks = shape.ranks}), shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(2 * micro_batches);
    const int warm_up = std::min(shape.ranks - r - 1, micro_batches);
    for (int m = 0; m < warm_up; ++m) order.push_back({Op::kForward, r, m});
    for (int m = 0; m < micro_batches; ++m) {
      if (const int next = warm_up + m; next < micro_batches) {
        order.push_back({Op::kForward, r, next});
      }
      order.push_back({Op::kBackward, r, m});
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
