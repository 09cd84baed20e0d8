// What the automatic scheduler evaluates orders with is what Simulate and
// MemoryUseOf say of them.
#include "coordinator/schedule/auto_problem.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_beam.h"
#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_list.h"
#include "coordinator/schedule/auto_replay.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/memory_use.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/auto_settings.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr double kNear = 1e-9;

// With slots for all micro-batches, so that none is waited for.
void ExpectAsSimulated(const Schedule& schedule, LoweringOptions options) {
  const AutoProblem problem =
      MakeAutoProblem(schedule.micro_batches, schedule.placement, options);
  const Memory memory = options.memory;
  options.memory = {};
  options.uniform_slots = schedule.micro_batches;
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                       Simulate(program, options.costs));
  const OrderTiming timing = TimeOrders(problem, schedule.orders);
  EXPECT_TRUE(timing.finished);
  EXPECT_NEAR(timing.makespan, simulation.makespan,
              kNear * simulation.makespan);
  EXPECT_GE(
      simulation.makespan * (1 + kNear),
      StepLowerBound(schedule.micro_batches, schedule.placement, options));

  const std::vector<RankParts> parts = PartsOfRanks(program);
  const std::vector<int64_t> peaks = PeakHeld(problem, schedule.orders);
  for (int r = 0; r < schedule.ranks(); ++r) {
    EXPECT_EQ(peaks[r], MemoryUseOf(program, r, parts[r], memory).peak_held);
  }
}

// The same for stages with places of their own, as lowered without any ahead.
void ExpectOwnPlacesAsLowered(const Schedule& schedule,
                              LoweringOptions options) {
  Memory memory = options.memory;
  memory.places = Places::kOwn;
  for (StageBytes& stage : memory.stages) {
    stage.held_until_weight += stage.held_until_input;
  }
  options.memory = memory;
  const std::vector<int64_t> peaks = PeakHeld(
      MakeAutoProblem(schedule.micro_batches, schedule.placement, options),
      schedule.orders);
  options.memory = {};
  options.uniform_slots = schedule.micro_batches;
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  const std::vector<RankParts> parts = PartsOfRanks(program);
  for (int r = 0; r < schedule.ranks(); ++r) {
    EXPECT_EQ(peaks[r], MemoryUseOf(program, r, parts[r], memory).activations);
  }
}

LoweringOptions RandomOptions(const Placement& placement,
                              std::mt19937* random) {
  LoweringOptions options = RandomSetting(1, placement,
                                          {.spread = StageSpread::kUnlike,
                                           .longest_transfer = 1,
                                           .most_fitting = 0,
                                           .bytes = true},
                                          random)
                                .choice.options;
  options.costs.seconds_per_byte = 0.125;
  options.costs.bytes = {.activation = static_cast<int64_t>((*random)() % 6),
                         .gradient = static_cast<int64_t>((*random)() % 6),
                         .tied = 3};
  options.costs.tied_add = 0.25;
  options.tied_embedding = (*random)() % 2 == 0;
  options.send_buffers = 1 + static_cast<int>((*random)() % 3);
  return options;
}

TEST(TimeOrders, IsWhatIsSimulatedOfEveryFixedSchedule) {
  std::mt19937 random(1);
  for (const absl::string_view name : GeneratorNames()) {
    for (const int chunks : {1, 2, 3}) {
      for (const int micro_batches : {1, 6, 8}) {
        const absl::StatusOr<Schedule> schedule = Generate(
            name,
            {.ranks = 3, .chunks = chunks, .micro_batches = micro_batches});
        if (!schedule.ok()) continue;
        SCOPED_TRACE(std::string(name));
        const LoweringOptions options =
            RandomOptions(schedule->placement, &random);
        ExpectAsSimulated(*schedule, options);
        ExpectOwnPlacesAsLowered(*schedule, options);
      }
    }
  }
}

TEST(TimeOrders, IsWhatIsSimulatedOfRandomOrders) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const Schedule schedule =
        RandomSchedule({.ranks = 1 + static_cast<int>(random() % 5),
                        .chunks = 1 + static_cast<int>(random() % 3),
                        .micro_batches = 1 + static_cast<int>(random() % 8)},
                       {.shuffle_placement = random() % 2 == 0}, &random);
    SCOPED_TRACE(i);
    const LoweringOptions options = RandomOptions(schedule.placement, &random);
    ExpectAsSimulated(schedule, options);
    ExpectOwnPlacesAsLowered(schedule, options);
  }
}

TEST(TimeOrders, SaysThatAnOrderCannotFinish) {
  AutoProblem problem =
      MakeAutoProblem(1, LoopPlacement({.ranks = 2}),
                      {.costs = UniformCosts({.ranks = 2}, {})});
  const Orders stuck = {{{Op::kBackward, 0, 0}, {Op::kForward, 0, 0}},
                        {{Op::kForward, 1, 0}, {Op::kBackward, 1, 0}}};
  EXPECT_FALSE(TimeOrders(problem, stuck).finished);
}

void ExpectWithinBudgets(const AutoProblem& problem, const Orders& orders) {
  const std::vector<int64_t> peaks = PeakHeld(problem, orders);
  for (int r = 0; r < problem.ranks; ++r) {
    EXPECT_LE(peaks[r], problem.budget[r]);
  }
}

// With room for three micro-batches and for one between its I and its W.
void GiveOwnPlaces(const Placement& placement, Memory* memory) {
  memory->places = Places::kOwn;
  memory->limits.assign(placement.ranks, 0);
  for (int s = 0; s < placement.stages(); ++s) {
    StageBytes& stage = memory->stages[s];
    memory->limits[placement.rank_of(s)] +=
        3 * stage.held_until_input + stage.held_until_weight;
    stage.held_until_weight += stage.held_until_input;
  }
}

// Memory for three micro-batches at most; by `i` one or two send buffers, and
// shared places or the stages' own.
AutoProblem TightProblem(int i, int micro_batches, const Placement& placement,
                         std::mt19937* random) {
  LoweringOptions options = RandomSetting(micro_batches, placement,
                                          {.spread = StageSpread::kUnlike,
                                           .longest_transfer = 1,
                                           .most_fitting = 3,
                                           .bytes = true},
                                          random)
                                .choice.options;
  options.memory.slot = {};
  options.send_buffers = 1 + i % 2;
  if (i % 4 < 2) GiveOwnPlaces(placement, &options.memory);
  return MakeAutoProblem(micro_batches, placement, options);
}

// What lists and beams report is what their orders take, within the budgets.
TEST(AutoSearches, ReportWhatTheirOrdersTake) {
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const RankShape shape{.ranks = 1 + static_cast<int>(random() % 5),
                          .chunks = 1 + i % 3};
    const int micro_batches = 1 + static_cast<int>(random() % 9);
    const AutoProblem problem = TightProblem(
        i, micro_batches, i % 2 == 0 ? VPlacement(shape) : LoopPlacement(shape),
        &random);
    std::vector<std::pair<double, Orders>> found;
    for (const Backward backward : {Backward::kSplit, Backward::kWhole}) {
      ListResult list = ScheduleList(
          problem,
          {.ranks = std::vector<Preference>(
               shape.ranks, {.least_gap = 0.5, .least_forward_gap = 0.25}),
           .backward = backward});
      ASSERT_TRUE(list.finished);
      found.emplace_back(list.makespan, std::move(list.orders));
    }
    BeamResult beam =
        SearchBeam(problem, {.width = 20, .known = 1e9, .most_work = 1 << 20});
    ASSERT_TRUE(beam.found);
    EXPECT_NEAR(TimeOrders(problem, beam.orders).makespan, beam.makespan,
                kNear * beam.makespan);
    found.emplace_back(beam.makespan, std::move(beam.orders));
    for (const auto& [makespan, orders] : found) {
      const OrderTiming timing = TimeOrders(problem, orders);
      EXPECT_TRUE(timing.finished);
      // A list may have waited in vain.
      EXPECT_LE(timing.makespan, makespan * (1 + kNear));
      ExpectWithinBudgets(problem, orders);
    }
  }
}

// Of 1f1b, whose B become I and W, and of each order that a replay gave.
TEST(Replay, GivesOrdersThatFitAndTakeWhatItReportsInBothDirections) {
  using Direction = ReplayOptions::Direction;
  std::mt19937 random(6);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const int ranks = 1 + static_cast<int>(random() % 5);
    const int micro_batches = 1 + static_cast<int>(random() % 9);
    const AutoProblem problem = TightProblem(
        i, micro_batches, LoopPlacement({.ranks = ranks}), &random);
    ASSERT_OK_AND_ASSIGN(
        Schedule schedule,
        Generate("1f1b", {.ranks = ranks, .micro_batches = micro_batches}));
    for (int round = 0; round < 6; ++round) {
      ReplayOptions replay{.direction = round % 2 == 0 ? Direction::kBackwards
                                                       : Direction::kForwards,
                           .patience = {0.5, 0.25, 1}};
      if (round > 1) replay.later.assign(ranks, {2, 0.5, 1});
      replay.split.held_share = i % 8 / 16.0;
      if (round > 3) replay.most_in_flight.assign(ranks, 2);
      ListResult result = Replay(problem, schedule.orders, replay);
      ASSERT_TRUE(result.finished);
      schedule.orders = std::move(result.orders);
      EXPECT_OK(Verify(schedule, {}));
      // A replay may have waited in vain.
      EXPECT_LE(TimeOrders(problem, schedule.orders).makespan,
                result.makespan * (1 + kNear));
      ExpectWithinBudgets(problem, schedule.orders);
    }
  }
}

// Once I and W are apart the W of 1f1b fill the gaps at its end.
TEST(Replay, ClosesTheGapsOfAnOrder) {
  const Placement placement = LoopPlacement({.ranks = 4});
  const AutoProblem problem =
      MakeAutoProblem(8, placement, {.costs = UniformCosts({.ranks = 4}, {})});
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 8}));
  EXPECT_NEAR(TimeOrders(problem, schedule.orders).makespan, 3 * (8 + 3),
              kNear);
  const ListResult backwards =
      Replay(problem, schedule.orders,
             {.direction = ReplayOptions::Direction::kBackwards});
  const ListResult forwards = Replay(problem, backwards.orders, {});
  // What zb-h1 takes, the least for a loop.
  EXPECT_NEAR(forwards.makespan, 3 * 8 + 3, kNear);
}

}  // namespace
}  // namespace penstock::coordinator::schedule
