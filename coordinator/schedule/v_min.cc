#include "coordinator/schedule/v_min.h"

#include <vector>

#include "common/status/status_macros.h"
#include "coordinator/schedule/v_pattern.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<Schedule> GenerateVMin(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("v-min", shape, 2));
  const int ranks = shape.ranks;
  std::vector<VSlots> slots;
  slots.reserve(ranks);
  for (int r = 0; r < ranks; ++r) {
    // Moves the backward where its slots would meet the forward's.
    const int late = ranks % 3 == 0 ? 2 : 0;
    slots.push_back({.forward_0 = r,
                     .forward_1 = 2 * ranks - r - 1,
                     .input_1 = 2 * ranks + late + r,
                     .input_0 = 4 * ranks + late - r - 1});
  }
  return RepeatVPattern("v-min", shape, slots);
}

}  // namespace penstock::coordinator::schedule
