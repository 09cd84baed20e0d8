#include "coordinator/schedule/auto_slot_room.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::schedule {
namespace {

using ::testing::ElementsAre;

TEST(SlotBytesOfRanks, WithoutSizesOfActivationsAreOfMessagesOnly) {
  LoweringOptions options;
  options.memory.slot = {.activation = 7, .gradient = 5};
  options.memory.places = Places::kOwn;
  // Rank 0 has two gradient slots and sends activations, rank 1 gradients; an
  // input ahead takes a stage's own place, of no size.
  EXPECT_THAT(SlotBytesOfRanks(LoopPlacement({.ranks = 2}), options, 1),
              ElementsAre(2 * 5 + 7, 5));
  options.memory.places = Places::kShared;
  EXPECT_THAT(SlotBytesOfRanks(LoopPlacement({.ranks = 2}), options, 1),
              ElementsAre(2 * 5 + 7, 5 + 7));
}

// Two ranks, of which the second has the larger stage.
LoweringOptions WithLimits(int64_t limit) {
  LoweringOptions options;
  options.memory.stages = {
      {.held_until_input = 800, .held_until_weight = 900},
      {.held_until_input = 700, .held_until_weight = 1000}};
  options.memory.slot = {.activation = 10, .gradient = 10};
  options.memory.limits = {limit, limit};
  return options;
}

std::vector<int64_t> Rung(int64_t limit, int below) {
  return OnRungBelow(LoopPlacement({.ranks = 2}), WithLimits(limit), below)
      .memory.limits;
}

// So what is found on a rung is found again where there is more memory, as far
// as its rungs reach down.
TEST(OnRungBelow, IsTheSameCutOnOneOfTheRungsBelowAnyHigherLimit) {
  const std::vector<int64_t> first = Rung(6000, 1);
  int same = 0;
  for (int64_t limit = 6001; limit < 12000; limit += 7) {
    int below = 0;
    while (below < 20 && Rung(limit, below) != first) ++below;
    EXPECT_LT(below, 20) << limit;
    same += below == 1;
  }
  EXPECT_GT(same, 0);  // The next rung is not reached at once.
}

TEST(OnRungBelow, EachRungLeavesLessAndWhatOneMicroBatchNeeds) {
  for (int64_t limit = 800; limit < 12000; limit += 7) {
    const LoweringOptions options = WithLimits(limit);
    std::vector<int64_t> above =
        WithRoomForSlots(LoopPlacement({.ranks = 2}), options, 0).memory.limits;
    const std::vector<int64_t> uncut = above;
    for (int below = 0; below < 6; ++below) {
      const std::vector<int64_t> cut = Rung(limit, below);
      for (int r = 0; r < 2; ++r) {
        EXPECT_LE(cut[r], above[r]);
        const int64_t one = options.memory.stages[r].held_until_input;
        EXPECT_GE(cut[r], std::min(one, uncut[r]));
      }
      above = cut;
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
