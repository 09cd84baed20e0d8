// What the automatic scheduler promises: the limits are kept, no fixed schedule
// that fits is better, and large steps are close to the lower bound.
#include "coordinator/schedule/auto_schedule.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/auto_settings.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

constexpr double kNear = 1e-9;

// Stages of equal length, a byte an activation, room for `fitting` of them.
AutoChoice Uniform(const Placement& placement, int fitting,
                   const RankTimes& times = {}) {
  const RankShape shape{.ranks = placement.ranks,
                        .chunks = placement.stages() / placement.ranks};
  AutoChoice choice{.placement = placement};
  choice.options.costs = UniformCosts(shape, times);
  choice.options.memory.stages.assign(
      shape.stages(), {.held_until_input = 1, .held_until_weight = 1});
  choice.options.memory.limits.assign(shape.ranks, fitting * shape.chunks);
  return choice;
}

AutoChoice Loop(int ranks, int fitting, const RankTimes& times = {}) {
  return Uniform(LoopPlacement({.ranks = ranks}), fitting, times);
}

TEST(AutoSchedule, EqualStagesTakeTheLeastStepThatThereIs) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const int micro_batches : {2 * ranks, 3 * ranks + 1}) {
      ASSERT_OK_AND_ASSIGN(
          const AutoSchedule made,
          MakeAutoSchedule(micro_batches, {Loop(ranks, 2 * ranks)}));
      EXPECT_NEAR(made.makespan, 3 * micro_batches + ranks - 1, kNear);
      EXPECT_EQ(made.schedule.name, "auto");
      EXPECT_EQ(made.program.name, "auto");
    }
  }
}

// zb-h1 takes as long as zb-h2 with half of the activations.
TEST(AutoSchedule, OfEqualStepsTheOneThatHoldsLessIsTaken) {
  AutoChoice choice = Loop(4, 100);
  choice.options.memory = {};
  ASSERT_OK_AND_ASSIGN(const AutoSchedule made, MakeAutoSchedule(12, {choice}));
  EXPECT_EQ(made.order, "zb-h1");
  for (const StageSlots& stage : made.program.stages) {
    EXPECT_LE(stage.peak_in_flight, 4);
  }
}

TEST(AutoSchedule, OneMicroBatchInFlightIsTheStepWithoutAPipeline) {
  ASSERT_OK_AND_ASSIGN(const AutoSchedule made,
                       MakeAutoSchedule(5, {Loop(4, 1)}));
  // F and I of all stages and the first W, five times; the other W are in
  // between.
  EXPECT_NEAR(made.makespan, 5 * (4 + 4 + 1), kNear);
}

TEST(AutoSchedule, MoreMemoryIsNeverLonger) {
  double last = std::numeric_limits<double>::infinity();
  for (int fitting = 1; fitting <= 8; ++fitting) {
    ASSERT_OK_AND_ASSIGN(const AutoSchedule made,
                         MakeAutoSchedule(8, {Loop(4, fitting,
                                                   {.forward = 1,
                                                    .backward_input = 1.3,
                                                    .backward_weight = 0.7,
                                                    .transfer = 0.25})}));
    EXPECT_LE(made.makespan, last * (1 + kNear)) << fitting;
    last = made.makespan;
  }
}

TEST(AutoSchedule, TakesTheChoiceWithTheShortestStep) {
  const RankShape two{.ranks = 4, .chunks = 2};
  const std::vector<AutoChoice> choices = {
      Loop(4, 8), Uniform(VPlacement(two), 8), Uniform(LoopPlacement(two), 8)};
  ASSERT_OK_AND_ASSIGN(const AutoSchedule made, MakeAutoSchedule(8, choices));
  // A chunk's ramp is half of a stage's: 3M + (K - 1)/2.
  EXPECT_NEAR(made.makespan, 3 * 8 + 1.5, kNear);
  EXPECT_EQ(made.schedule.placement, choices[made.choice].placement);
  EXPECT_NE(made.choice, 0u);

  // With transfers that are long for a chunk the stages stay whole.
  std::vector<AutoChoice> far = choices;
  for (AutoChoice& choice : far) choice.options.costs.latency = 1;
  ASSERT_OK_AND_ASSIGN(const AutoSchedule whole, MakeAutoSchedule(8, far));
  EXPECT_EQ(whole.choice, 0u);
}

// Placements with up to 2 chunks, all kinds of times, sizes and limits.
std::vector<AutoSetting> Settings(int count, std::mt19937* random) {
  std::vector<AutoSetting> settings;
  for (int i = 0; i < count; ++i) {
    const int ranks = 1 + static_cast<int>((*random)() % 6);
    const RankShape shape{.ranks = ranks, .chunks = 1 + i % 2};
    const int micro_batches =
        1 + static_cast<int>((*random)() % (3 * static_cast<uint32_t>(ranks)));
    constexpr StageSpread kSpreads[] = {
        StageSpread::kEqual, StageSpread::kUneven, StageSpread::kUnlike};
    settings.push_back(RandomSetting(
        micro_batches, i % 4 == 3 ? VPlacement(shape) : LoopPlacement(shape),
        {.spread = kSpreads[i % 3],
         .longest_transfer = i % 5 < 2 ? 0.0 : 1.0,
         .most_fitting = i % 7 == 0 ? 0 : 2 * ranks,
         .bytes = i % 3 == 0},
        random));
    settings.back().choice.options.tied_embedding = i % 4 < 2;
    settings.back().choice.options.reduce_replicas = i % 8 == 1;
    settings.back().choice.options.send_buffers = 1 + i % 9 / 8;
    if (i % 11 == 0) {
      for (StageTimes& times : settings.back().choice.options.costs.stages) {
        times.backward = 0.8 * (times.backward_input + times.backward_weight);
      }
    }
  }
  return settings;
}

TEST(AutoSchedule, IsProvedKeepsItsLimitsAndTakesWhatItSays) {
  std::mt19937 random(3);
  for (const AutoSetting& setting : Settings(60, &random)) {
    const LoweringOptions& options = setting.choice.options;
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule made,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    EXPECT_OK(Verify(made.schedule, options));
    EXPECT_OK(VerifyLowered(made.program, options.memory));
    ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                         Simulate(made.program, options.costs, options.memory));
    EXPECT_EQ(simulation.makespan, made.makespan);
    for (size_t r = 0; r < options.memory.limits.size(); ++r) {
      EXPECT_LE(simulation.ranks[r].peak_bytes, options.memory.limits[r]);
    }
    EXPECT_GE(made.makespan * (1 + kNear),
              StepLowerBound(setting.micro_batches, setting.choice.placement,
                             options));
  }
}

// What I adds does not fit, so there is one order: F and B in turn.
TEST(AutoSchedule, WhereOnlyAWholeBackwardFitsItIsTheLowerBound) {
  AutoChoice choice = Loop(1, 1);
  choice.options.costs = UniformCosts({.ranks = 1}, {2, 3, 5, 0});
  choice.options.memory.stages = {
      {.held_until_input = 4, .held_until_weight = 7}};
  choice.options.memory.limits = {6};
  for (const Places places : {Places::kShared, Places::kOwn}) {
    choice.options.memory.places = places;
    ASSERT_OK_AND_ASSIGN(const AutoSchedule made,
                         MakeAutoSchedule(3, {choice}));
    EXPECT_EQ(made.makespan, 30);
    EXPECT_EQ(StepLowerBound(3, choice.placement, choice.options), 30);
  }
}

TEST(AutoSchedule, NoFixedScheduleThatFitsIsShorter) {
  std::mt19937 random(5);
  int compared = 0;
  for (const AutoSetting& setting : Settings(120, &random)) {
    const AutoChoice& choice = setting.choice;
    ASSERT_OK_AND_ASSIGN(const AutoSchedule made,
                         MakeAutoSchedule(setting.micro_batches, {choice}));
    for (const absl::string_view name : GeneratorNames()) {
      const absl::StatusOr<Schedule> fixed =
          name == "auto"
              ? absl::NotFoundError("itself")
              : Generate(name, {.ranks = choice.placement.ranks,
                                .chunks = made.schedule.chunks(),
                                .micro_batches = setting.micro_batches});
      if (!fixed.ok() || !(fixed->placement == choice.placement)) continue;
      const absl::StatusOr<LoweredProgram> program =
          LowerVerified(*fixed, choice.options);
      if (!program.ok()) continue;  // Its memory.
      ++compared;
      ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                           Simulate(*program, choice.options.costs));
      EXPECT_LE(made.makespan, simulation.makespan * (1 + kNear)) << name;
    }
  }
  EXPECT_GT(compared, 240);
}

TEST(AutoSchedule, IsTheSameEachTime) {
  std::mt19937 random(7);
  for (const AutoSetting& setting : Settings(12, &random)) {
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule first,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule second,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    EXPECT_EQ(first.schedule.orders, second.schedule.orders);
  }
}

// At the memory of 2 K stages, where docs/schedules.md promises it.
TEST(AutoSchedule, LargeStepsAreCloseToTheLowerBound) {
  std::mt19937 random(11);
  for (int i = 0; i < 20; ++i) {
    const AutoSetting setting =
        LargeSetting(i % 4 == 0 ? StageSpread::kSame : StageSpread::kUneven,
                     i % 3 == 0 ? 0.1 : 0.0, &random);
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule made,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    EXPECT_LE(made.makespan, 1.005 * StepLowerBound(setting.micro_batches,
                                                    setting.choice.placement,
                                                    setting.choice.options))
        << setting.choice.placement.ranks << " ranks, " << setting.micro_batches
        << " micro-batches";
  }
}

// Stages that differ, of which lists alone leave some 1.3 % above it.
TEST(AutoSchedule, ReplaysBringUnevenStagesCloseToTheLowerBound) {
  std::mt19937 random(20261130);
  for (int i = 0; i < 48; ++i) {
    SCOPED_TRACE(i);
    const AutoSetting setting = LargeSetting(StageSpread::kUneven, 0, &random);
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule made,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    EXPECT_LE(made.makespan, 1.002 * StepLowerBound(setting.micro_batches,
                                                    setting.choice.placement,
                                                    setting.choice.options));
  }
}

TEST(AutoSchedule, OfTwoChoicesTheOneThatMissesLessIsNamed) {
  AutoChoice small = Loop(2, 1);
  small.options.memory.stages.assign(
      2, {.held_until_input = 4, .held_until_weight = 4});
  AutoChoice large = small;
  large.options.memory.stages.assign(
      2, {.held_until_input = 9, .held_until_weight = 9});
  EXPECT_THAT(MakeAutoSchedule(2, {large, small}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "auto: no order meets the memory limits: rank 0 needs 4 "
                       "bytes of activations for one micro-batch, 3 more than "
                       "its limit of 1"));
}

TEST(AutoSchedule, RefusesWhatHasNoMeaning) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const AutoChoice good = Loop(2, 2);
  EXPECT_THAT(MakeAutoSchedule(2, {}), StatusIs(invalid, HasSubstr("no plac")));
  EXPECT_THAT(MakeAutoSchedule(0, {good}),
              StatusIs(invalid, HasSubstr("number of micro-batches is 0")));
  AutoChoice bad = good;
  bad.placement.rank_of_stage = {0, 0};
  EXPECT_THAT(MakeAutoSchedule(2, {good, bad}),
              StatusIs(invalid, HasSubstr("rank 0 has 2 stages")));
  bad = good;
  bad.options.costs.stages.pop_back();
  EXPECT_THAT(MakeAutoSchedule(2, {bad}),
              StatusIs(invalid, HasSubstr("costs")));
  bad = good;
  bad.options.memory.limits.pop_back();
  EXPECT_THAT(MakeAutoSchedule(2, {bad}),
              StatusIs(invalid, HasSubstr("memory: ranks with limits")));
  bad = good;
  bad.options.send_buffers = 0;
  EXPECT_THAT(MakeAutoSchedule(2, {bad}),
              StatusIs(invalid, HasSubstr("send buffers")));
  bad = good;
  bad.options.uniform_slots = 3;
  EXPECT_THAT(MakeAutoSchedule(2, {bad}),
              StatusIs(invalid, HasSubstr("slots")));
}

// Where W needs more than F leaves (recompute), a limit may have room for B
// only.
TEST(AutoSchedule, RunsWholeBackwardsWhereOnlyTheyFit) {
  AutoChoice choice = Loop(3, 4);
  choice.options.memory.stages.assign(
      3, {.held_until_input = 2, .held_until_weight = 7});
  choice.options.memory.limits.assign(3, 6);
  ASSERT_OK_AND_ASSIGN(const AutoSchedule made, MakeAutoSchedule(6, {choice}));
  // 1f1b with 3, 2 and 1 in flight fits.
  EXPECT_NEAR(made.makespan, 3 * (6 + 3 - 1), kNear);
}

TEST(GenerateAuto, IsForEqualStagesWithoutALimit) {
  ASSERT_OK_AND_ASSIGN(const Schedule loop,
                       Generate("auto", {.ranks = 4, .micro_batches = 8}));
  EXPECT_EQ(loop.name, "auto");
  EXPECT_EQ(loop.chunks(), 1);
  EXPECT_OK(Verify(loop, {}));
  ASSERT_OK_AND_ASSIGN(
      const Schedule chunked,
      Generate("auto", {.ranks = 4, .chunks = 2, .micro_batches = 8}));
  EXPECT_EQ(chunked.chunks(), 2);
  EXPECT_OK(Verify(chunked, {}));
  EXPECT_THAT(Generate("auto", {.ranks = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("number of ranks is 0")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
