#include "coordinator/schedule/v_half.h"

#include <vector>

#include "common/status/status_macros.h"
#include "coordinator/schedule/v_pattern.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateVHalf(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("v-half", shape, 2));
  const int ranks = shape.ranks;
  std::vector<VSlots> slots;
  slots.reserve(ranks);
  for (int r = 0; r < ranks; ++r) {
    // Moves the backward where its slots would meet the forward's.
    const int late = ranks % 2 == 0 ? 3 : 0;
    slots.push_back({.forward_0 = 2 * r,
                     .forward_1 = 3 * ranks - r - 2,
                     .input_1 = 3 * ranks + late + 2 * r - 1,
                     .input_0 = 6 * ranks + late - r - 2});
  }
  return RepeatVPattern("v-half", shape, slots);
}

}  // namespace penstock::coordinator::schedule
