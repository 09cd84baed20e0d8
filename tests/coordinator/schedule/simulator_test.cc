#include "coordinator/schedule/simulator.h"

#include <random>
#include <string>

#include "coordinator/schedule/capacity.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/slot_numbers.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/coordinator/schedule/rule_oracle.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

Costs RandomCosts(int stages, std::mt19937* random) {
  Costs costs;
  for (int s = 0; s < stages; ++s) {
    costs.stages.push_back({.forward = RandomEighths(random, 0, 16),
                            .backward_input = RandomEighths(random, 1, 16),
                            .backward_weight = RandomEighths(random, 0, 16)});
  }
  if ((*random)() % 2 == 0) costs.stages[0].backward = 2.5;
  costs.latency = RandomEighths(random, 0, 8);
  costs.seconds_per_byte = 0.125;
  costs.bytes = {.activation = static_cast<int64_t>((*random)() % 6),
                 .gradient = static_cast<int64_t>((*random)() % 6),
                 .tied = 3};
  costs.tied_add = 0.25;
  return costs;
}

Schedule RandomOne(std::mt19937* random) {
  const Shape shape{.ranks = 1 + static_cast<int>((*random)() % 5),
                    .chunks = 1 + static_cast<int>((*random)() % 3),
                    .micro_batches = 1 + static_cast<int>((*random)() % 10)};
  return RandomSchedule(shape,
                        {.shuffle_forwards = (*random)() % 3 == 0,
                         .shuffle_placement = (*random)() % 2 == 0},
                        random);
}

TEST(Simulate, EqualsTheRulePlayedOutWithRealSlots) {
  std::mt19937 random(7);
  for (int i = 0; i < 600; ++i) {
    const Schedule schedule = RandomOne(&random);
    const Costs costs = RandomCosts(schedule.stages(), &random);
    LoweringOptions options{.tied_embedding = random() % 2 == 0,
                            .reduce_replicas = random() % 2 == 0,
                            .send_buffers = 1 + static_cast<int>(random() % 3)};
    options.costs = costs;
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         Lower(schedule, options));
    ASSERT_OK_AND_ASSIGN(const Simulation simulation, Simulate(program, costs));
    const OracleResult oracle = PlayOut(program, costs);
    ASSERT_EQ(oracle.broken, "") << PrintCsv(schedule);
    ASSERT_TRUE(oracle.finished) << PrintCsv(schedule);
    ASSERT_EQ(simulation.makespan, oracle.makespan) << PrintCsv(schedule);
  }
}

// With the fewest slots some programs deadlock: simulator, verifier and the
// rule played out must agree on which.
TEST(Simulate, DeadlocksExactlyWhereTheRulePlayedOutDoes) {
  std::mt19937 random(11);
  int deadlocks = 0;
  for (int i = 0; i < 800; ++i) {
    const Shape shape{.ranks = 2 + static_cast<int>(random() % 3),
                      .chunks = 1 + static_cast<int>(random() % 3),
                      .micro_batches = 2 + static_cast<int>(random() % 8)};
    const Schedule schedule =
        RandomSchedule(shape, {.shuffle_placement = true}, &random);
    const Costs costs = RandomCosts(schedule.stages(), &random);
    ASSERT_OK_AND_ASSIGN(LoweredProgram program, Lower(schedule, {}));
    SetOwnSlots(&program);
    for (Edge& edge : program.edges) {
      edge.capacity =
          edge.lands_in_stash ? program.stages[edge.target_stage].slots : 1;
    }
    NumberSlots(&program);
    const OracleResult oracle = PlayOut(program, costs);
    ASSERT_EQ(oracle.broken, "");
    const absl::StatusOr<Simulation> simulation = Simulate(program, costs);
    ASSERT_EQ(simulation.ok(), oracle.finished) << PrintCsv(schedule);
    EXPECT_EQ(VerifyLowered(program).ok(), oracle.finished);
    deadlocks += !oracle.finished;
    if (oracle.finished) {
      EXPECT_EQ(simulation->makespan, oracle.makespan);
    } else {
      EXPECT_THAT(simulation, StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("deadlock; cycle:")));
    }
  }
  EXPECT_GT(deadlocks, 20);
  EXPECT_LT(deadlocks, 780);
}

// docs/schedules.md: capacities cost no time, whatever the times are.
TEST(Simulate, ComputedCapacitiesTakeNoLongerThanUnlimitedSlots) {
  std::mt19937 random(13);
  for (int i = 0; i < 400; ++i) {
    const Schedule schedule = RandomOne(&random);
    LoweringOptions options;
    options.costs = RandomCosts(schedule.stages(), &random);
    // Lowering takes an operation to last at least a moment.
    for (StageTimes& times : options.costs.stages) {
      times.forward += 0.125;
      times.backward_weight += 0.125;
    }
    ASSERT_OK_AND_ASSIGN(const LoweredProgram computed,
                         Lower(schedule, options));
    options.uniform_slots = schedule.micro_batches;
    ASSERT_OK_AND_ASSIGN(const LoweredProgram unlimited,
                         Lower(schedule, options));
    ASSERT_OK_AND_ASSIGN(const Simulation a, Simulate(computed, options.costs));
    ASSERT_OK_AND_ASSIGN(const Simulation b,
                         Simulate(unlimited, options.costs));
    ASSERT_NEAR(a.makespan, b.makespan, 1e-6 * b.makespan)
        << PrintCsv(schedule);
  }
}

TEST(Simulate, TheCriticalPathIsAChainFromZeroToTheMakespan) {
  std::mt19937 random(17);
  for (int i = 0; i < 200; ++i) {
    const Schedule schedule = RandomOne(&random);
    const Costs costs = RandomCosts(schedule.stages(), &random);
    LoweringOptions options{.send_buffers = static_cast<int>(random() % 3)};
    if (options.send_buffers == 0) options.uniform_slots = 20;
    const absl::StatusOr<LoweredProgram> program = Lower(schedule, options);
    ASSERT_OK(program.status());
    ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                         Simulate(*program, costs));
    const auto& path = simulation.critical_path;
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path.front().start, 0);
    EXPECT_EQ(path.back().end, simulation.makespan);
    for (size_t j = 0; j + 1 < path.size(); ++j) {
      // A message waits for the wire only, not for the arrival before it.
      if (path[j].edge != kNone && path[j + 1].edge != kNone) {
        EXPECT_LE(path[j + 1].start, path[j].end);
      } else {
        EXPECT_EQ(path[j].end, path[j + 1].start);
      }
    }
  }
}

TEST(Simulate, TimesATwoRankStepByHand) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 2}));
  LoweringOptions options;
  options.costs = UniformCosts({.ranks = 2}, {1, 1, 1, 0.5});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  ASSERT_OK_AND_ASSIGN(const Simulation s, Simulate(program, options.costs));
  // 0F0 [0,1) -> 1.5 1F0 [1.5,2.5) 1B0 [2.5,4.5) -> 5 0B0 [5,7)
  // 0F1 [1.5,2.5): its send buffer is free at 1.5.
  // 1F1 [4.5,5.5) 1B1 [5.5,7.5) -> 8 0B1 [8,10)
  EXPECT_EQ(s.timeline[0][1].start, 1.5);
  EXPECT_EQ(s.timeline[0][2].start, 5);
  EXPECT_EQ(s.timeline[1][2].start, 4.5);
  EXPECT_EQ(s.timeline[1][3].end, 7.5);
  EXPECT_EQ(s.timeline[0][3].start, 8);
  EXPECT_EQ(s.makespan, 10);
  EXPECT_EQ(s.ranks[0].busy, 6);
  EXPECT_DOUBLE_EQ(s.bubble_rate, 0.4);
  EXPECT_DOUBLE_EQ(s.span_bubble_rate, 0.4);  // Rank 0: 0 to 10, busy 6.
  ASSERT_EQ(s.critical_path.size(), 8u);
  EXPECT_EQ(s.critical_path[1].edge, 0);  // 0F0's output.
  EXPECT_EQ(s.critical_path[1].end, 1.5);
}

// Chunks of one rank may differ as well as ranks and operations. K = 1, v = 2:
// 0F0 [0,1) 1F0 [1,4) 1I0 [4,9) 0I0 [9,11) 1W0 [11,18) 0W0 [18,18.5), and the
// same chunks with the second on a rank of its own, its transfer 0.25.
TEST(Simulate, TimesOfEachStageAndOperationAreItsOwn) {
  Costs costs;
  costs.stages = {{.forward = 1, .backward_input = 2, .backward_weight = 0.5},
                  {.forward = 3, .backward_input = 5, .backward_weight = 7}};
  costs.latency = 0.25;
  const auto time = [&](const char* csv, int ranks) -> Simulation {
    const Schedule schedule =
        *ParseCsv(csv, {.ranks = ranks, .micro_batches = 1, .name = "test"});
    LoweringOptions options;
    options.costs = costs;
    return *Simulate(*Lower(schedule, options), costs);
  };
  const Simulation one = time("0F0,1F0,1I0,0I0,1W0,0W0\n", 1);
  EXPECT_EQ(one.timeline[0][3].start, 9);
  EXPECT_EQ(one.timeline[0][4].end, 18);
  EXPECT_EQ(one.makespan, 18.5);
  EXPECT_EQ(one.ranks[0].busy, 18.5);
  EXPECT_EQ(one.bubble_rate, 0);
  const Simulation two = time("0F0,0I0,0W0\n1F0,1I0,1W0\n", 2);
  // 1F0 [1.25,4.25) 1I0 [4.25,9.25) 1W0 [9.25,16.25); 0I0 [9.5,11.5).
  EXPECT_EQ(two.timeline[1][2].start, 9.25);
  EXPECT_EQ(two.timeline[0][1].start, 9.5);
  EXPECT_EQ(two.ranks[0].last_end, 12);
  EXPECT_EQ(two.makespan, 16.25);
  EXPECT_DOUBLE_EQ(two.bubble_rate, (16.25 - 15) / 16.25);
  EXPECT_DOUBLE_EQ(two.span_bubble_rate, (12 - 3.5) / 12);
}

// Three forwards on rank 0 with nothing between; rank 1 takes 10 for one. With
// one slot a message leaves when the forward before has its slot back.
TEST(Simulate, AMessageWaitsForASlot) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("gpipe", {.ranks = 2, .micro_batches = 3}));
  Costs costs = UniformCosts({.ranks = 2}, {});
  costs.stages[1].forward = 10;
  costs.latency = 1;
  const auto start_of_last = [&](int slots) {
    LoweringOptions options{.send_buffers = 3, .uniform_slots = slots};
    options.costs = costs;
    return Simulate(*Lower(schedule, options), costs)->timeline[1][2].start;
  };
  // 1F0 [2,12), 1F1 [13,23): its message left at 12, 1F2 at 24.
  EXPECT_EQ(start_of_last(1), 24);
  EXPECT_EQ(start_of_last(2), 22);  // 1F0 [2,12) 1F1 [12,22).
}

TEST(Simulate, CountsBytesOfActivationsSlotsAndBuffers) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("gpipe", {.ranks = 2, .micro_batches = 3}));
  LoweringOptions options;
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  Memory memory;
  memory.stages = {{100, 0}, {1000, 0}};
  memory.slot = {.activation = 10, .gradient = 3, .tied = 0};
  ASSERT_OK_AND_ASSIGN(
      const Simulation s,
      Simulate(program, UniformCosts({.ranks = 2}, {}), memory));
  EXPECT_EQ(s.ranks[0].peak_bytes, 300 + 10 + 3);  // Sends one, takes one.
  EXPECT_EQ(s.ranks[1].peak_bytes, 3000 + 3);      // Lands in the stash.
}

// K = 1, M = 2, each of 100 bytes from F to I. From I to W it is 300 and the
// peak is at 0I0 (300 + 100); or 40 and it is at 0F1, where both are whole.
TEST(Simulate, CountsWhatIsHeldFromInputToWeightGradientApart) {
  ASSERT_OK_AND_ASSIGN(
      const Schedule schedule,
      ParseCsv("0F0,0F1,0I0,0W0,0I1,0W1\n",
               {.ranks = 1, .micro_batches = 2, .name = "test"}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  const auto peak = [&](int64_t held_until_weight) {
    Memory memory;
    memory.stages = {
        {.held_until_input = 100, .held_until_weight = held_until_weight}};
    return Simulate(program, UniformCosts({.ranks = 1}, {}), memory)
        ->ranks[0]
        .peak_bytes;
  };
  EXPECT_EQ(peak(300), 400);
  EXPECT_EQ(peak(40), 200);
}

TEST(Simulate, RefusesCostsThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("gpipe", {.ranks = 2, .micro_batches = 3}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Simulate(program, UniformCosts({.ranks = 3}, {})),
              StatusIs(invalid, HasSubstr("3 given, the schedule has 2")));
  EXPECT_THAT(Simulate(program, UniformCosts({.ranks = 2}, {.forward = -1})),
              StatusIs(invalid, HasSubstr("a time of stage 0 is -1")));
  EXPECT_THAT(Simulate(program, UniformCosts({.ranks = 2}, {.transfer = -1})),
              StatusIs(invalid, HasSubstr("latency")));
  Memory memory;
  memory.limits = {1};
  EXPECT_THAT(Simulate(program, UniformCosts({.ranks = 2}, {}), memory),
              StatusIs(invalid, HasSubstr("ranks with limits: 1 given")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
