#include "coordinator/schedule/zb_h1.h"

#include "common/status/status_macros.h"
#include "coordinator/schedule/zb1p_order.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateZbH1(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("zb-h1", shape, 1));
  const LoopedOrder looped = LoopedOrder::OneGroup(shape);
  Schedule schedule = EmptySchedule(
      "zb-h1", LoopPlacement({.ranks = shape.ranks}), shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    schedule.orders[r] = Zb1pOrder(looped, r);
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
