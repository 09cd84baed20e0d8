// Makespans, bubbles and peaks against their closed forms.
#include <algorithm>
#include <string>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 8};
constexpr double kNear = 1e-9;

struct SimulatedStep {
  LoweredProgram program;
  Simulation simulation;
};

// Lowers with capacities computed for `times` and simulates exactly those.
absl::StatusOr<SimulatedStep> Simulated(const Schedule& schedule,
                                        const RankTimes& times) {
  LoweringOptions options;
  options.costs = UniformCosts(schedule.rank_shape(), times);
  absl::Status status = Verify(schedule, options);
  if (!status.ok()) return status;
  absl::StatusOr<LoweredProgram> program = Lower(schedule, options);
  if (!program.ok()) return program.status();
  absl::StatusOr<Simulation> simulation = Simulate(*program, options.costs);
  if (!simulation.ok()) return simulation.status();
  return SimulatedStep{*std::move(program), *std::move(simulation)};
}

// One cell of the table: a generator, K, M and times.
template <typename Check>
void ForEveryCell(absl::string_view name, const Check& check) {
  const RankTimes kTimes[] = {{1, 1, 1, 0}, {1, 1.5, 0.5, 0}, {2, 1, 4, 0}};
  for (const int ranks : kRanks) {
    for (int micro_batches = 1; micro_batches <= 4 * ranks; ++micro_batches) {
      for (const RankTimes& times : kTimes) {
        SCOPED_TRACE(std::string(name) + " K=" + std::to_string(ranks) +
                     " M=" + std::to_string(micro_batches));
        ASSERT_OK_AND_ASSIGN(
            const Schedule schedule,
            Generate(name, {.ranks = ranks, .micro_batches = micro_batches}));
        ASSERT_OK_AND_ASSIGN(const SimulatedStep run,
                             Simulated(schedule, times));
        check(run, ranks, micro_batches,
              times.forward + times.backward_input + times.backward_weight);
      }
    }
  }
}

// `op` is F + B.
TEST(Formulas, Naive) {
  ForEveryCell("naive", [](const SimulatedStep& run, int k, int m, double op) {
    EXPECT_NEAR(run.simulation.makespan, m * k * op, kNear);
    EXPECT_NEAR(run.simulation.bubble_rate, 1 - 1.0 / k, kNear);
    for (const RankSimulation& rank : run.simulation.ranks) {
      EXPECT_EQ(rank.peak_in_flight, 1);
      EXPECT_NEAR(rank.busy, m * op, kNear);
    }
  });
}

TEST(Formulas, GPipe) {
  ForEveryCell("gpipe", [](const SimulatedStep& run, int k, int m, double op) {
    EXPECT_NEAR(run.simulation.makespan, (m + k - 1) * op, kNear);
    EXPECT_NEAR(run.simulation.bubble_rate, (k - 1.0) / (m + k - 1), kNear);
    for (const RankSimulation& rank : run.simulation.ranks) {
      EXPECT_EQ(rank.peak_in_flight, m);
    }
  });
}

TEST(Formulas, OneForwardOneBackward) {
  ForEveryCell("1f1b", [](const SimulatedStep& run, int k, int m, double op) {
    EXPECT_NEAR(run.simulation.makespan, (m + k - 1) * op, kNear);
    EXPECT_NEAR(run.simulation.bubble_rate, (k - 1.0) / (m + k - 1), kNear);
    for (int r = 0; r < k; ++r) {
      EXPECT_EQ(run.simulation.ranks[r].peak_in_flight, std::min(k - r, m));
    }
  });
}

TEST(Formulas, TheClosedFormIsWhatIsSimulated) {
  for (const absl::string_view name : GeneratorNames()) {
    ForEveryCell(name, [&](const SimulatedStep& run, int k, int m, double) {
      const auto closed = ClosedFormOf(name, {.ranks = k, .micro_batches = m});
      ASSERT_TRUE(closed.has_value());
      EXPECT_NEAR(run.simulation.bubble_rate, closed->bubble_rate, kNear);
    });
  }
  EXPECT_FALSE(ClosedFormOf("zb-h1", {}).has_value());
  EXPECT_FALSE(ClosedFormOf("file:1f1b", {}).has_value());
}

TEST(Generate, KnowsExactlyTheNamesThatAreBuilt) {
  for (const NamedSchedule& row : kNamedSchedules) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_EQ(Generate(row.name, {}).ok(), row.built);
    EXPECT_EQ(FindSchedule(row.name), &row);
    EXPECT_EQ(FindSchedule(row.value), &row);
  }
  EXPECT_EQ(FindSchedule(ScheduleKind::kFile), nullptr);
}

TEST(Formulas, BubbleRatesOfTheTable) {
  const struct {
    int ranks, micro_batches;
    double percent;
  } kTable[] = {
      {4, 4, 42.9}, {4, 8, 27.3}, {4, 16, 15.8}, {4, 32, 8.6}, {8, 16, 30.4}};
  for (const auto& [ranks, micro_batches, percent] : kTable) {
    for (const absl::string_view name : {"gpipe", "1f1b"}) {
      ASSERT_OK_AND_ASSIGN(
          const Schedule schedule,
          Generate(name, {.ranks = ranks, .micro_batches = micro_batches}));
      ASSERT_OK_AND_ASSIGN(const SimulatedStep run, Simulated(schedule, {}));
      EXPECT_NEAR(100 * run.simulation.bubble_rate, percent, 0.05);
    }
  }
}

// Without transfers the pipeline needs no slot beyond the activations in
// flight, and one gradient slot an edge.
TEST(Formulas, CapacitiesWithoutTransfersAreTheLeastPossible) {
  for (const absl::string_view name : GeneratorNames()) {
    ForEveryCell(name, [](const SimulatedStep& run, int k, int m, double) {
      ASSERT_EQ(run.program.edges.size(), 2u * (k - 1));
      for (const Edge& edge : run.program.edges) {
        EXPECT_EQ(edge.messages, m);
        if (edge.kind == EdgeKind::kGradient) {
          EXPECT_EQ(edge.capacity, 1);
        }
      }
      for (const StageSlots& stage : run.program.stages) {
        EXPECT_EQ(stage.ahead(), 0);
      }
    });
  }
}

// Shapes that only the tests have, as far as they exercise split backward and
// chunks in the simulator.
TEST(Formulas, ZbH2) {
  for (const int k : {2, 3, 4, 8}) {
    for (int m = 2 * k - 1; m <= 4 * k; ++m) {
      ASSERT_OK_AND_ASSIGN(
          const SimulatedStep run,
          Simulated(ZbH2({.ranks = k, .micro_batches = m}), {}));
      EXPECT_NEAR(run.simulation.makespan, 3 * m + k - 1, kNear);
      EXPECT_NEAR(run.simulation.span_bubble_rate, 0, kNear);
      for (const RankSimulation& rank : run.simulation.ranks) {
        EXPECT_EQ(rank.peak_in_flight, 2 * k - 1);
      }
    }
  }
}

TEST(Formulas, InterleavedZb1p) {
  for (const int v : {1, 2, 4}) {
    ASSERT_OK_AND_ASSIGN(
        const SimulatedStep run,
        Simulated(
            InterleavedZb1p({.ranks = 4, .chunks = v, .micro_batches = 8}),
            {}));
    // (K - 1)(F + I - W) / v of bubble.
    EXPECT_NEAR(run.simulation.makespan, 3 * 8 + 3.0 / v, kNear);
    for (const RankSimulation& rank : run.simulation.ranks) {
      EXPECT_EQ(rank.peak_in_flight, std::min(v * 8, (v - 1) * 4 + 4));
    }
  }
}

TEST(Formulas, LoopedBfs) {
  for (const auto& [v, bubble] : {std::pair{2, 15}, {4, 27}}) {
    ASSERT_OK_AND_ASSIGN(
        const SimulatedStep run,
        Simulated(LoopedBfs({.ranks = 4, .chunks = v, .micro_batches = 2}),
                  {}));
    EXPECT_NEAR(run.simulation.makespan * v, 3 * 2 * v + bubble, kNear);
  }
}

TEST(Generate, RefusesShapesWithoutMeaning) {
  using ::penstock::testing::StatusIs;
  using ::testing::HasSubstr;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Generate("1f1b", {.ranks = 2, .chunks = 2, .micro_batches = 2}),
              StatusIs(invalid, "1f1b: has 1 chunk a rank, chunks is 2"));
  EXPECT_THAT(Generate("gpipe", {.ranks = 0}),
              StatusIs(invalid, HasSubstr("number of ranks is 0")));
  EXPECT_THAT(Generate("naive", {.ranks = 1, .micro_batches = -3}),
              StatusIs(invalid, HasSubstr("number of micro-batches is -3")));
  EXPECT_THAT(Generate("naive", {.ranks = 4096, .micro_batches = 4096}),
              StatusIs(invalid, HasSubstr("more than")));
  EXPECT_THAT(Generate("2f2b", {}),
              StatusIs(invalid,
                       "there is no schedule \"2f2b\"; there are "
                       "naive, gpipe, 1f1b"));
  EXPECT_THAT(Generate("zb-h1", {}),
              StatusIs(invalid,
                       "not built yet: schedule \"zb-h1\"; there are "
                       "naive, gpipe, 1f1b"));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
