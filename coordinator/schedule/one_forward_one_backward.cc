#include "coordinator/schedule/one_forward_one_backward.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateOneForwardOneBackward(const Shape& shape) {
  RETURN_IF_ERROR(CheckOneChunkShape("1f1b", shape));
  const int micro_batches = shape.micro_batches;
  Schedule schedule{.name = "1f1b",
                    .placement = LoopPlacement({.ranks = shape.ranks}),
                    .micro_batches = micro_batches,
                    .orders = {}};
  schedule.orders.resize(shape.ranks);
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
