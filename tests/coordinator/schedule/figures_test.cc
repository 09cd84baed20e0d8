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

// The table of docs/schedules.md. With the barrier ZB-H2 takes the step of
// ZB-H1, for 2K-1 activations instead of K.
TEST(Figures, SchedulesComparedAtEightRanks) {
  const struct {
    absl::string_view name;
    int chunks;
    double makespan;
    double percent;
    double span_percent;
    double first_held, last_held;  // Ranks 0 and 7, in stages' activations.
  } kTable[] = {{"naive", 1, 576, 87.5, 87.5, 1, 1},
                {"gpipe", 1, 93, 22.6, 22.6, 24, 24},
                {"1f1b", 1, 93, 22.6, 22.6, 8, 1},
                {"interleaved", 2, 82.5, 12.7, 12.7, 11.5, 4.5},
                {"interleaved", 4, 77.25, 6.8, 6.8, 9.75, 6.25},
                {"looped-bfs", 2, 82.5, 12.7, 12.7, 24, 24},
                {"zb-h1", 1, 79, 8.9, 8.9, 8, 8},
                {"zb-h2", 1, 79, 8.9, 0, 15, 15},
                {"zb1p-interleaved", 2, 75.5, 4.6, 4.6, 8, 8},
                {"zb-v", 2, 75.5, 4.6, 0, 8, 8},
                {"v-half", 2, 85, 15.3, 15.3, 5, 5},
                {"v-min", 2, 85.5, 15.8, 15.8, 3, 4},
                {"dualpipe-v", 2, 76, 5.3, 5.3, 8.5, 8.5}};
  for (const auto& row : kTable) {
    SCOPED_TRACE(absl::StrCat(row.name, " v=", row.chunks));
    const SimulatedStep step = Step(row.name, {8, row.chunks, 24});
    EXPECT_NEAR(step.makespan(), row.makespan, kNear);
    EXPECT_NEAR(100 * step.simulation.bubble_rate, row.percent, 0.05);
    EXPECT_NEAR(100 * step.simulation.span_bubble_rate, row.span_percent, 0.05);
    const std::vector<int> peaks = Peaks(step);
    EXPECT_NEAR(1.0 * peaks.front() / row.chunks, row.first_held, kNear);
    EXPECT_NEAR(1.0 * peaks.back() / row.chunks, row.last_held, kNear);
    const auto [least, most] = std::minmax_element(peaks.begin(), peaks.end());
    EXPECT_NEAR(1.0 * *most / row.chunks,
                std::max(row.first_held, row.last_held), kNear);
    EXPECT_NEAR(1.0 * *least / row.chunks,
                std::min(row.first_held, row.last_held), kNear);
  }
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
