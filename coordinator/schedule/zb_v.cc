#include "coordinator/schedule/zb_v.h"

#include <algorithm>

#include "common/status/status_macros.h"
#include "coordinator/schedule/v_order.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateZbV(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("zb-v", shape, 2));
  const int ranks = shape.ranks;
  const int count = std::max(shape.micro_batches, 2 * ranks - 1);
  Schedule schedule = EmptySchedule(
      "zb-v", VPlacement({.ranks = ranks, .chunks = 2}), shape.micro_batches);
  for (int r = 0; r < ranks; ++r) {
    schedule.orders[r].reserve(6 * shape.micro_batches);
    VOrder order(shape, r, &schedule.orders[r]);
    for (int i = 0; i < 2 * (ranks - r) - 1; ++i) order.Forward(0);
    for (int i = 0; i < r; ++i) {
      order.Forward(1);
      order.Forward(0);
    }
    for (int i = 0; i < ranks - r; ++i) {
      order.Forward(1);
      order.BackwardInput(1);
      order.BackwardWeight(1);
    }
    while (order.forwards(1) < count) {
      if (order.forwards(0) < count) order.Forward(0);
      order.BackwardInput(0);
      order.BackwardWeight(0);
      order.Forward(1);
      order.BackwardInput(1);
      order.BackwardWeight(1);
    }
    for (int i = 0; i < r; ++i) {
      order.BackwardInput(0);
      order.BackwardInput(1);
    }
    for (int i = 0; i < ranks - r; ++i) {
      order.BackwardInput(0);
      order.BackwardWeight(0);
    }
    while (order.weights(1) < count) order.BackwardWeight(1);
    while (order.weights(0) < count) order.BackwardWeight(0);
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
