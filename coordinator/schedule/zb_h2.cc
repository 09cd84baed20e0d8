#include "coordinator/schedule/zb_h2.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateZbH2(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("zb-h2", shape, 1));
  const int micro_batches = shape.micro_batches;
  Schedule schedule = EmptySchedule(
      "zb-h2", LoopPlacement({.ranks = shape.ranks}), micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    order.reserve(3 * micro_batches);
    const int warm_up = std::min(2 * (shape.ranks - r) - 1, micro_batches);
    for (int m = 0; m < warm_up; ++m) order.push_back({Op::kForward, r, m});
    for (int i = 0; i < micro_batches + 2 * r; ++i) {
      if (i < micro_batches) order.push_back({Op::kBackwardInput, r, i});
      if (const int late = i - 2 * r; late >= 0) {
        order.push_back({Op::kBackwardWeight, r, late});
      }
      if (const int next = warm_up + i; next < micro_batches) {
        order.push_back({Op::kForward, r, next});
      }
    }
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
