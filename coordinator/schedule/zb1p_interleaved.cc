#include "coordinator/schedule/zb1p_interleaved.h"

#include "common/status/status_macros.h"
#include "coordinator/schedule/zb1p_order.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateZb1pInterleaved(const Shape& shape) {
  ASSIGN_OR_RETURN(const LoopedOrder looped,
                   LoopedOrder::Create("zb1p-interleaved", shape));
  Schedule schedule = EmptySchedule(
      "zb1p-interleaved",
      LoopPlacement({.ranks = shape.ranks, .chunks = shape.chunks}),
      shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    schedule.orders[r] = Zb1pOrder(looped, r);
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
