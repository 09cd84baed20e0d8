// How many slots each edge gets: against the least that does not deadlock, and
// the least at full speed.
#include <optional>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// What a schedule needs where every edge has the same number of slots and sends
// block.
struct Slots {
  int most_that_deadlocks = -1;
  int least_at_full_speed = 0;
};
Slots UniformSlots(const Schedule& schedule, int send_buffers,
                   double transfer) {
  const Costs costs = UniformCosts(schedule.rank_shape(), {1, 1, 1, transfer});
  const auto makespan = [&](int slots) -> std::optional<double> {
    const absl::StatusOr<LoweredProgram> program =
        Lower(schedule, {.send_buffers = send_buffers, .uniform_slots = slots});
    if (!program.ok()) {
      EXPECT_THAT(program, StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("deadlock")));
      return std::nullopt;
    }
    return Simulate(*program, costs)->makespan;
  };
  const double unlimited = *makespan(schedule.micro_batches);
  Slots result;
  for (int slots = 0; result.least_at_full_speed == 0; ++slots) {
    const std::optional<double> time = makespan(slots);
    if (!time.has_value()) {
      result.most_that_deadlocks = slots;
    } else if (slots > 0 && *time <= unlimited + 1e-9) {
      result.least_at_full_speed = slots;
    }
  }
  return result;
}

TEST(Capacity, LoopedBfsNeedsThirteenSlotsAndDeadlocksAtThree) {
  const Schedule schedule =
      *Generate("looped-bfs", {.ranks = 4, .chunks = 2, .micro_batches = 16});
  const Slots blocking = UniformSlots(schedule, 0, 0);
  EXPECT_EQ(blocking.most_that_deadlocks, 3);
  EXPECT_EQ(blocking.least_at_full_speed, 13);  // So 12 is slower.
  // One send buffer holds one message more.
  EXPECT_EQ(UniformSlots(schedule, 1, 0).most_that_deadlocks, 2);
}

TEST(Capacity, InterleavedZb1pNeedsSixSlotsAndDeadlocksAtThree) {
  const Schedule schedule = *Generate(
      "zb1p-interleaved", {.ranks = 8, .chunks = 2, .micro_batches = 24});
  const Slots blocking = UniformSlots(schedule, 0, 0);
  EXPECT_EQ(blocking.most_that_deadlocks, 3);
  EXPECT_EQ(blocking.least_at_full_speed, 6);
}

TEST(Capacity, OtherSchedulesNeedTwoSlotsAtMost) {
  // GPipe is a stream: with transfers the second slot takes the next message
  // while the first is worked on.
  const struct {
    absl::string_view name;
    int chunks;
    int slots;
  } kTable[] = {
      {"gpipe", 1, 2}, {"1f1b", 1, 1}, {"zb-h2", 1, 2}, {"zb-v", 2, 2}};
  for (const auto& [name, chunks, slots] : kTable) {
    for (const auto& [ranks, micro_batches] : {std::pair{4, 8}, {8, 24}}) {
      const Schedule schedule = *Generate(
          name,
          {.ranks = ranks, .chunks = chunks, .micro_batches = micro_batches});
      EXPECT_EQ(UniformSlots(schedule, 0, 0.001).least_at_full_speed, slots)
          << name << " K=" << ranks;
    }
  }
}

// The stash takes inputs early where its slots lie idle, so a looped schedule
// whose chunks hold all micro-batches needs none ahead.
TEST(Capacity, LoopedBfsNeedsNoSlotAheadOfItsStash) {
  const Schedule schedule =
      *Generate("looped-bfs", {.ranks = 4, .chunks = 2, .micro_batches = 16});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  for (const StageSlots& stage : program.stages) {
    EXPECT_EQ(stage.slots, 16);
    EXPECT_EQ(stage.ahead(), 0);
  }
  int most = 0;
  for (const Edge& edge : program.edges) {
    if (edge.kind == EdgeKind::kGradient) most = std::max(most, edge.capacity);
  }
  EXPECT_EQ(most, 13);  // The thirteen above.
}

TEST(Capacity, GrowsByASlotAheadWhereTransfersWouldBeExposed) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 16}));
  LoweringOptions options;
  options.costs = UniformCosts({.ranks = 4}, {1, 1, 1, 0.1});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  EXPECT_EQ(program.stages[0].ahead(), 0);
  EXPECT_EQ(program.stages[3].ahead(), 1);
  EXPECT_EQ(program.stages[3].slots, 2);
}

TEST(Capacity, AMemoryLimitTakesSlotsAwayButNeverToADeadlock) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 16}));
  LoweringOptions options;
  options.costs = UniformCosts({.ranks = 4}, {1, 1, 1, 0.1});
  options.memory.stages.assign(4, {.held_until_input = 100});
  options.memory.slot = {.activation = 10, .gradient = 10, .tied = 0};
  // Rank 3: one activation (100), one send buffer (10), one slot ahead (10).
  options.memory.limits.assign(4, 1000);
  options.memory.limits[3] = 120;
  ASSERT_OK_AND_ASSIGN(LoweredProgram program, Lower(schedule, options));
  EXPECT_EQ(program.stages[3].slots, 2);
  options.memory.limits[3] = 119;
  ASSERT_OK_AND_ASSIGN(program, Lower(schedule, options));
  EXPECT_EQ(program.stages[3].slots, 1);
  EXPECT_OK(VerifyLowered(program, options.memory));
  options.memory.limits[3] = 109;
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 3 needs 110 bytes with the fewest "
                                 "slots, 1 more than its limit of 109")));
}

// Forwards that do not ascend: full speed takes a slot for each micro-batch,
// two are enough.
TEST(Capacity, AMemoryLimitTakesSlotsFromOrdersThatDoNotAscendToo) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       ParseCsv("0F1,0F0,0F3,0F2,0B0,0B1,0B2,0B3\n"
                                "1F1,1F0,1B0,1B1,1F3,1F2,1B2,1B3\n",
                                {.ranks = 2, .micro_batches = 4}));
  LoweringOptions options;
  options.memory.stages.assign(2, {.held_until_input = 100});
  options.memory.slot = {.activation = 10, .gradient = 10, .tied = 0};
  // Rank 1: two activations (200), one send buffer (10), two slots ahead (20).
  options.memory.limits = {1000, 230};
  ASSERT_OK_AND_ASSIGN(LoweredProgram program, Lower(schedule, options));
  EXPECT_EQ(program.stages[1].slots, 4);
  options.memory.limits[1] = 229;
  ASSERT_OK_AND_ASSIGN(program, Lower(schedule, options));
  EXPECT_EQ(program.stages[1].slots, 2);
  EXPECT_OK(VerifyLowered(program, options.memory));
  options.memory.limits[1] = 209;
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 1 needs 210 bytes with the fewest "
                                 "slots, 1 more than its limit of 209")));
}

// Stages 0 and 1 on rank 0: each has its own slots, and the first one's I needs
// two places until its W; all of that at once though it is not held at once.
TEST(Capacity, OwnPlacesAreCountedAsTheyAreAllocated) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       ParseCsv("0F0,0F1,1F0,1B0,1F1,1B1,0I0,0I1,0W0,0W1\n",
                                {.ranks = 1, .micro_batches = 2}));
  LoweringOptions options;
  options.memory.places = Places::kOwn;
  options.memory.stages = {
      {.held_until_input = 100, .held_until_weight = 107},
      {.held_until_input = 1000, .held_until_weight = 2000}};
  options.memory.slot = {.activation = 50, .gradient = 3, .tied = 0};
  // A slot of stage 1 is taken from 0F on, when its input is written.
  const int64_t needed = 2 * 100 + 2 * 7 + 2 * 1000 + 2 * 3;
  options.memory.limits = {needed};
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  EXPECT_OK(VerifyLowered(program, options.memory));
  EXPECT_EQ(program.stages[0].held, 2);
  EXPECT_EQ(program.stages[1].held, 0);
  ASSERT_OK_AND_ASSIGN(
      const Simulation simulation,
      Simulate(program, UniformCosts(schedule.rank_shape(), {}),
               options.memory));
  EXPECT_EQ(simulation.ranks[0].peak_bytes, needed);
  options.memory.limits = {needed - 1};
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr(absl::StrCat("rank 0 needs ", needed))));
}

TEST(Capacity, AMemoryLimitThatWouldDeadlockIsRefused) {
  // Looped BFS with 1 gradient slot an edge deadlocks.
  const Schedule schedule =
      *Generate("looped-bfs", {.ranks = 4, .chunks = 2, .micro_batches = 16});
  LoweringOptions options;
  options.memory.slot.gradient = 1;
  options.memory.limits.assign(4, 4);
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the slots that fit in the memory limits "
                                 "deadlock")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
