// What memory limits the automatic scheduler gets by with, slots included.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// With chunks the fewest slots stop most orders for good: room is left for
// more, rather than going back to one micro-batch at a time.
TEST(AutoLimits, LeavesRoomForTheSlotsThatChunksNeed) {
  const RankShape shape{.ranks = 8, .chunks = 4};
  AutoChoice choice{.placement = LoopPlacement(shape)};
  choice.options.costs = UniformCosts(shape, {.transfer = 0.1});
  choice.options.memory.stages.assign(
      shape.stages(), {.held_until_input = 3, .held_until_weight = 4});
  choice.options.memory.slot = {.activation = 1, .gradient = 1};
  choice.options.memory.limits.assign(shape.ranks, 112);
  ASSERT_OK_AND_ASSIGN(const AutoSchedule made, MakeAutoSchedule(32, {choice}));
  // One micro-batch after the other takes 32 (8 F + 8 B + 62 transfers).
  EXPECT_LT(made.makespan, 32 * (8 * 3 + 6.2) / 4);
}

TEST(AutoLimits, ALimitThatNoOrderMeetsIsRefusedToTheByte) {
  for (const bool v_shaped : {false, true}) {
    const RankShape shape{.ranks = 3, .chunks = v_shaped ? 2 : 1};
    AutoChoice choice{.placement =
                          v_shaped ? VPlacement(shape) : LoopPlacement(shape)};
    choice.options.tied_embedding = true;
    choice.options.memory.stages.assign(
        shape.stages(), {.held_until_input = 100, .held_until_weight = 130});
    choice.options.memory.slot = {.activation = 7, .gradient = 5, .tied = 3};
    // As much as the order with the least memory needs.
    std::vector<int64_t> least;
    Schedule sequential{.name = "sequential",
                        .placement = choice.placement,
                        .micro_batches = 4};
    sequential.orders.resize(3);
    for (int m = 0; m < 4; ++m) {
      for (int s = 0; s < shape.stages(); ++s) {
        sequential.orders[choice.placement.rank_of(s)].push_back(
            {Op::kForward, s, m});
      }
      for (int s = shape.stages() - 1; s >= 0; --s) {
        sequential.orders[choice.placement.rank_of(s)].push_back(
            {Op::kBackward, s, m});
      }
    }
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         LowerVerified(sequential, choice.options));
    choice.options.costs = UniformCosts(shape, {});
    ASSERT_OK_AND_ASSIGN(
        const Simulation simulation,
        Simulate(program, choice.options.costs, choice.options.memory));
    for (const RankSimulation& rank : simulation.ranks) {
      choice.options.memory.limits.push_back(rank.peak_bytes);
    }
    EXPECT_OK(MakeAutoSchedule(4, {choice}).status());

    choice.options.memory.limits[1] -= 2;
    EXPECT_THAT(
        MakeAutoSchedule(4, {choice}),
        StatusIs(absl::StatusCode::kResourceExhausted,
                 HasSubstr(absl::StrCat(
                     "rank 1 needs ", shape.chunks * 100,
                     " bytes of activations for one micro-batch and ",
                     simulation.ranks[1].peak_bytes - shape.chunks * 100,
                     " bytes of slots and send buffers, 2 more than its "
                     "limit of ",
                     choice.options.memory.limits[1]))));
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
