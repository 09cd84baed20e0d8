#include "coordinator/schedule/critical_savings.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

constexpr double kRounding = 1e-12;

struct Timed {
  LoweredProgram program;
  Costs costs;
  Simulation simulation;
};

Timed TimeOf(const Schedule& schedule, const Costs& costs,
             int send_buffers = 1) {
  LoweringOptions options{.send_buffers = send_buffers};
  options.costs = costs;
  LoweredProgram program = *Lower(schedule, options);
  Simulation simulation = *Simulate(program, costs);
  return {std::move(program), costs, std::move(simulation)};
}

std::map<std::string, CriticalSaving> ByName(const Timed& timed) {
  const std::vector<CriticalSaving> parts =
      *CriticalSavings(timed.program, timed.costs, timed.simulation);
  std::map<std::string, CriticalSaving> names;
  for (const CriticalSaving& part : parts) {
    names[ToString(timed.program, part)] = part;
  }
  return names;
}

// The step of TimesATwoRankStepByHand: one chain of 10.
TEST(CriticalSavings, OfAStepWithOneChainAreOneHundredthOfEachPart) {
  const Timed timed =
      TimeOf(*Generate("1f1b", {.ranks = 2, .micro_batches = 2}),
             UniformCosts({.ranks = 2}, {1, 1, 1, 0.5}));
  ASSERT_EQ(timed.simulation.makespan, 10);
  auto parts = ByName(timed);
  ASSERT_EQ(parts.size(), 6u);
  const auto expect = [&](const char* name, int count, double on_path) {
    const CriticalSaving& part = parts.at(name);
    EXPECT_EQ(part.count, count) << name;
    EXPECT_EQ(part.on_path, on_path) << name;
    EXPECT_DOUBLE_EQ(part.share, on_path / 10) << name;
    EXPECT_NEAR(part.saved.value(), on_path / 100, kRounding) << name;
  };
  expect("F of stage 0", 1, 1);
  expect("F of stage 1", 2, 2);
  expect("B of stage 1", 2, 4);
  expect("B of stage 0", 1, 2);
  expect("activation 0->1", 1, 0.5);
  expect("gradient 1->0", 1, 0.5);
}

// GPipe, K = 2, M = 2, no transfers, makespan 9. Path 0F0 0F1 1F1 1B0 1B1 0B1:
// F of stage 0: 1F0 then holds 1F1 up, one of its two is gained.
// B of stage 1: 0B0 [4.98, 6.98) then holds 0B1 up, one of its two.
TEST(CriticalSavings, EndWhereAnotherPathTakesOver) {
  const Timed timed =
      TimeOf(*Generate("gpipe", {.ranks = 2, .micro_batches = 2}),
             UniformCosts({.ranks = 2}, {}));
  ASSERT_EQ(timed.simulation.makespan, 9);
  auto parts = ByName(timed);
  ASSERT_EQ(parts.size(), 4u);  // Transfers take no time.
  EXPECT_EQ(parts.at("F of stage 0").on_path, 2);
  EXPECT_NEAR(parts.at("F of stage 0").saved.value(), 0.01, kRounding);
  EXPECT_EQ(parts.at("F of stage 1").on_path, 1);
  EXPECT_NEAR(parts.at("F of stage 1").saved.value(), 0.01, kRounding);
  EXPECT_EQ(parts.at("B of stage 1").on_path, 4);
  EXPECT_NEAR(parts.at("B of stage 1").saved.value(), 0.02, kRounding);
  EXPECT_EQ(parts.at("B of stage 0").on_path, 2);
  EXPECT_NEAR(parts.at("B of stage 0").saved.value(), 0.02, kRounding);
}

// A wire that takes 4 for a message, and 1 of latency behind it. Message 0 is
// sent at 1 and leaves the wire at 5, message 1 then, to arrive at 10: the
// latency of message 0 lies beside the path. 1F1 [10, 11), 1B0, 1B1 to 15, its
// gradient to 16, 0B1 to 18.
TEST(CriticalSavings, CountAMessagesWaitForTheWireOnce) {
  Costs costs = UniformCosts({.ranks = 2}, {});
  costs.latency = 1;
  costs.seconds_per_byte = 1;
  costs.bytes.activation = 4;
  const Timed timed =
      TimeOf(*Generate("gpipe", {.ranks = 2, .micro_batches = 2}), costs,
             /*send_buffers=*/2);
  EXPECT_EQ(timed.simulation.timeline[0][1].start, 1);
  EXPECT_EQ(timed.simulation.timeline[1][0].start, 6);
  EXPECT_EQ(timed.simulation.timeline[1][1].start, 10);
  ASSERT_EQ(timed.simulation.makespan, 18);
  auto parts = ByName(timed);
  EXPECT_EQ(parts.at("activation 0->1").count, 2);
  EXPECT_EQ(parts.at("activation 0->1").on_path, 9);
  EXPECT_NEAR(parts.at("activation 0->1").saved.value(), 0.09, kRounding);
  EXPECT_EQ(parts.at("gradient 1->0").on_path, 1);
}

// Every saving once more by the slow way: the costs changed and all simulated
// again; what is not in the list saves nothing; all shares are the makespan.
TEST(CriticalSavings, EqualASimulationWithThatTimeChanged) {
  std::mt19937 random(23);
  for (int i = 0; i < 60; ++i) {
    const Shape shape{.ranks = 1 + static_cast<int>(random() % 4),
                      .chunks = 1 + static_cast<int>(random() % 2),
                      .micro_batches = 1 + static_cast<int>(random() % 6)};
    const Schedule schedule =
        RandomSchedule(shape, {.shuffle_placement = true}, &random);
    Costs costs;
    for (int s = 0; s < schedule.stages(); ++s) {
      costs.stages.push_back({.forward = RandomEighths(&random, 1, 16),
                              .backward_input = RandomEighths(&random, 1, 16),
                              .backward_weight = RandomEighths(&random, 1, 16),
                              .backward = RandomEighths(&random, 1, 16)});
    }
    costs.latency = RandomEighths(&random, 0, 4);
    const Timed timed = TimeOf(schedule, costs);
    auto parts = ByName(timed);
    double on_path = 0;
    for (const auto& [name, part] : parts) on_path += part.on_path;
    EXPECT_NEAR(on_path, timed.simulation.makespan, 1e-9);
    for (int s = 0; s < schedule.stages(); ++s) {
      const auto expect = [&](char letter, auto change) {
        Costs faster = costs;
        change(faster.stages[s]);
        ASSERT_OK_AND_ASSIGN(const Simulation again,
                             Simulate(timed.program, faster));
        const double saved = timed.simulation.makespan - again.makespan;
        const auto it = parts.find(std::string(1, letter) + " of stage " +
                                   std::to_string(s));
        if (it == parts.end()) {
          EXPECT_NEAR(saved, 0, 1e-9) << PrintCsv(schedule);
          return;
        }
        EXPECT_NEAR(it->second.saved.value(), saved, 1e-9)
            << PrintCsv(schedule);
        EXPECT_LE(saved, 0.01 * it->second.on_path + 1e-9);
      };
      expect('F', [](StageTimes& times) { times.forward *= 0.99; });
      expect('B', [](StageTimes& times) { *times.backward *= 0.99; });
      expect('I', [](StageTimes& times) { times.backward_input *= 0.99; });
      expect('W', [](StageTimes& times) { times.backward_weight *= 0.99; });
    }
  }
}

TEST(CriticalSavings, OfATiedWeightNameItsAddition) {
  LoweringOptions options{.tied_embedding = true};
  options.costs = UniformCosts({.ranks = 2}, {});
  options.costs.tied_add = 3;
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                       Lower(*Generate("gpipe", {.ranks = 2}), options));
  ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                       Simulate(program, options.costs));
  ASSERT_OK_AND_ASSIGN(const auto parts,
                       CriticalSavings(program, options.costs, simulation));
  EXPECT_EQ(ToString(program, parts[0]), "tied-reduce of stage 0");
  EXPECT_NEAR(parts[0].saved.value(), 0.03, kRounding);
}

TEST(CriticalSavings, AreComputedForTheLongestPartsWhileTheWorkLasts) {
  const Timed timed =
      TimeOf(*Generate("1f1b", {.ranks = 2, .micro_batches = 2}),
             UniformCosts({.ranks = 2}, {1, 1, 1, 0.5}));
  // Ten steps: four commands and a barrier on each rank.
  ASSERT_OK_AND_ASSIGN(
      const auto parts,
      CriticalSavings(timed.program, timed.costs, timed.simulation,
                      {.most_steps = 19, .least = 0}));
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(ToString(timed.program, parts[0]), "B of stage 1");
  EXPECT_TRUE(parts[0].saved.has_value());
  for (size_t i = 1; i < parts.size(); ++i) {
    EXPECT_FALSE(parts[i].saved.has_value());
    EXPECT_LE(parts[i].on_path, parts[i - 1].on_path);
  }
  ASSERT_OK_AND_ASSIGN(
      const auto least,
      CriticalSavings(timed.program, timed.costs, timed.simulation,
                      {.most_steps = 0, .least = 3}));
  EXPECT_TRUE(least[2].saved.has_value());
  EXPECT_FALSE(least[3].saved.has_value());
}

TEST(CriticalSavings, OfAStepThatTakesNoTimeAreNone) {
  const Timed timed =
      TimeOf(*Generate("gpipe", {.ranks = 2, .micro_batches = 2}),
             UniformCosts({.ranks = 2}, {0, 0, 0, 0}));
  ASSERT_OK_AND_ASSIGN(
      const auto parts,
      CriticalSavings(timed.program, timed.costs, timed.simulation));
  EXPECT_TRUE(parts.empty());
}

TEST(CriticalSavings, RefuseCostsThatDoNotFit) {
  const Timed timed =
      TimeOf(*Generate("gpipe", {.ranks = 2, .micro_batches = 2}),
             UniformCosts({.ranks = 2}, {}));
  EXPECT_THAT(CriticalSavings(timed.program, UniformCosts({.ranks = 3}, {}),
                              timed.simulation),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 given, the schedule has 2")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
