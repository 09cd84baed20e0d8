#include "coordinator/schedule/gpipe.h"

#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateGPipe(const Shape& shape) {
  RETURN_IF_ERROR(CheckOneChunkShape("gpipe", shape));
  Schedule schedule{.name = "gpipe",
                    .placement = LoopPlacement({.ranks = shape.ranks}),
                    .micro_batches = shape.micro_batches,
                    .orders = {}};
  schedule.orders.resize(shape.ranks);
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
