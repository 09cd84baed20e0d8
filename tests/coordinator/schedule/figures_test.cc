// Figures that the literature and docs/schedules.md give for single cells.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/simulated_step.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

constexpr double kNear = 1e-9;

SimulatedStep Step(absl::string_view name, const Shape& shape) {
  return *SimulateStep(*Generate(name, shape));
}

std::vector<int> Peaks(const SimulatedStep& step) {
  std::vector<int> peaks;
  for (const RankSimulation& rank : step.simulation.ranks) {
    peaks.push_back(rank.peak_in_flight);
  }
  return peaks;
}

TEST(Figures, BubbleRates) {
  const struct {
    absl::string_view name;
    Shape shape;
    double percent;
  } kTable[] = {
      {"naive", {4, 1, 8}, 75},       {"gpipe", {4, 1, 4}, 42.9},
      {"gpipe", {4, 1, 8}, 27.3},     {"gpipe", {4, 1, 16}, 15.8},
      {"gpipe", {4, 1, 32}, 8.6},     {"gpipe", {8, 1, 16}, 30.4},
      {"1f1b", {4, 1, 4}, 42.9},      {"1f1b", {4, 1, 8}, 27.3},
      {"1f1b", {4, 1, 16}, 15.8},     {"1f1b", {4, 1, 32}, 8.6},
      {"1f1b", {8, 1, 16}, 30.4},     {"interleaved", {4, 2, 8}, 15.8},
      {"interleaved", {4, 4, 8}, 8.6}};
  for (const auto& [name, shape, percent] : kTable) {
    SCOPED_TRACE(absl::StrCat(name, " K=", shape.ranks, " v=", shape.chunks,
                              " M=", shape.micro_batches));
    EXPECT_NEAR(100 * Step(name, shape).simulation.bubble_rate, percent, 0.05);
  }
}

// The bubble in chunk units, v of which are the time of one rank's F.
TEST(Figures, BubblesInChunkUnits) {
  const struct {
    absl::string_view name;
    Shape shape;
    double units;
  } kTable[] = {
      {"looped-bfs", {4, 2, 2}, 15},      {"looped-bfs", {4, 4, 2}, 27},
      {"zb1p-interleaved", {4, 1, 8}, 3}, {"zb1p-interleaved", {4, 2, 8}, 3},
      {"zb1p-interleaved", {4, 4, 8}, 3}, {"zb-v", {4, 2, 4}, 6}};
  for (const auto& [name, shape, units] : kTable) {
    SCOPED_TRACE(absl::StrCat(name, " v=", shape.chunks));
    const SimulatedStep step = Step(name, shape);
    EXPECT_NEAR((step.makespan() - 3 * shape.micro_batches) * shape.chunks,
                units, kNear);
  }
  EXPECT_NEAR(2 * Step("zb-v", {4, 2, 4}).makespan(), 30, kNear);
}

TEST(Figures, PeaksOnEachRank) {
  EXPECT_THAT(Peaks(Step("1f1b", {4, 1, 8})), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(Peaks(Step("interleaved", {4, 2, 8})), ElementsAre(11, 9, 7, 5));
  EXPECT_THAT(Peaks(Step("interleaved", {4, 4, 8})),
              ElementsAre(19, 17, 15, 13));
}

// With the barrier ZB-H2 takes the step of ZB-H1, for 2K-1 activations
// instead of K.
TEST(Figures, TheStepWithItsBarrier) {
  EXPECT_NEAR(Step("zb-h1", {8, 1, 24}).makespan(), 79, kNear);
  EXPECT_NEAR(Step("zb-h2", {8, 1, 24}).makespan(), 79, kNear);
  EXPECT_NEAR(Step("zb-v", {8, 2, 24}).makespan(), 75.5, kNear);
  EXPECT_NEAR(Step("1f1b", {8, 1, 24}).makespan(), 93, kNear);
  EXPECT_THAT(Peaks(Step("zb-h1", {8, 1, 24})), Each(8));
  EXPECT_THAT(Peaks(Step("zb-h2", {8, 1, 24})), Each(15));
  EXPECT_THAT(Peaks(Step("zb-v", {8, 2, 24})), Each(16));
}

// What would be held if activations were freed at I.
TEST(Figures, ZbH1HoldsAsLittleAs1F1BUntilI) {
  for (const int k : {2, 3, 4, 8}) {
    for (int m = 1; m <= 4 * k; ++m) {
      ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                           Generate("zb-h1", {.ranks = k, .micro_batches = m}));
      for (int r = 0; r < k; ++r) {
        int held = 0;
        int peak = 0;
        for (const Command& c : schedule.orders[r]) {
          if (c.op == Op::kForward) peak = std::max(peak, ++held);
          if (c.op == Op::kBackwardInput) --held;
        }
        EXPECT_EQ(peak, std::min(k - r, m)) << "K=" << k << " M=" << m;
      }
    }
  }
}

TEST(Figures, VHalfHasAboutTwoThirdsOf1F1BsBubble) {
  for (const int k : {3, 4, 5, 6, 7, 8, 16}) {
    const double ratio = Step("v-half", {k, 2, 4 * k}).simulation.bubble_rate /
                         Step("1f1b", {k, 1, 4 * k}).simulation.bubble_rate;
    // 0.62 to 0.70, rounded.
    EXPECT_THAT(ratio, AllOf(Ge(0.615), Le(0.705))) << "K=" << k;
  }
}

TEST(Figures, VHalfAndVMinHoldAHalfAndAThird) {
  for (const int k : {2, 3, 4, 5, 6, 7, 8, 16}) {
    for (const int m : {4 * k, 4 * k + 1, 5 * k}) {
      SCOPED_TRACE(absl::StrCat("K=", k, " M=", m));
      const std::vector<int> half = Peaks(Step("v-half", {k, 2, m}));
      const std::vector<int> least = Peaks(Step("v-min", {k, 2, m}));
      EXPECT_EQ(*std::max_element(half.begin(), half.end()), 2 * ((k + 2) / 2));
      EXPECT_EQ(*std::max_element(least.begin(), least.end()),
                2 * ((k + 4) / 3));
      // Never more, however few micro-batches there are.
      for (const int few : {1, k - 1, k, k + 1, 2 * k}) {
        EXPECT_THAT(Peaks(Step("v-half", {k, 2, few})),
                    Each(Le(2 * ((k + 2) / 2))));
        EXPECT_THAT(Peaks(Step("v-min", {k, 2, few})),
                    Each(Le(2 * ((k + 4) / 3))));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
