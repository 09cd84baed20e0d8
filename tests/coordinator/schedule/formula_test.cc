// Makespans, bubbles and peaks of every schedule against their closed forms,
// written here once more, in each form's domain of K, M and v. What has no
// closed form is in golden_test.cc; the figures of the literature in
// figures_test.cc.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/simulated_step.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr double kNear = 1e-9;

// A simulated cell with its K, M, v and N, and the rank's times.
struct Cell {
  const SimulatedStep& run;
  RankTimes times;
  int k, m, v;
  int n = m / std::max(1, m / k);  // Group of interleaved schedules.
  double f = times.forward;
  double i = times.backward_input;
  double w = times.backward_weight;
  double b = i + w;
};

// The unit times, and others for which a form holds as well.
const std::vector<RankTimes> kUnitTimes = {{1, 1, 1, 0}};
const std::vector<RankTimes> kAnyTimes = {
    {1, 1, 1, 0}, {1, 1.5, 0.5, 0}, {2, 1, 4, 0}};
// W must fit into the gap that an I leaves.
const std::vector<RankTimes> kShortWeightTimes = {
    {1, 1, 1, 0}, {1, 1.5, 0.5, 0}, {2, 2, 1.5, 0}};

// What a schedule is said to cost, each where it is said; nullopt elsewhere.
struct Form {
  absl::string_view name;
  std::vector<int> chunks;
  std::vector<RankTimes> times;
  // Whether the schedule has a meaning there.
  std::function<bool(const Shape&)> legal;
  std::function<std::optional<double>(const Cell&)> makespan;
  std::function<std::optional<double>(const Cell&)> span_bubble;
  std::function<std::optional<int>(const Cell&, int rank)> peak;
};

bool Always(const Shape&) { return true; }
bool EqualGroups(const Shape& shape) {
  return shape.micro_batches % std::max(1, shape.micro_batches / shape.ranks) ==
         0;
}
std::optional<double> NotSaid(const Cell&) { return std::nullopt; }
std::optional<int> PeakNotSaid(const Cell&, int) { return std::nullopt; }

double Work(const Cell& c) { return c.m * (c.f + c.b); }
// (K-1)(F+B)/v, and what M < K adds.
double LoopedBubble(const Cell& c) {
  const double bubble = (c.k - 1) * (c.f + c.b) / c.v;
  const double below = (c.v - 1) * (c.k - c.m) * (c.f + c.b) / c.v;
  return c.m < c.k ? bubble + below : bubble;
}

const std::vector<Form>& Forms() {
  static const auto* const forms = new std::vector<Form>{
      {"naive",
       {1},
       kAnyTimes,
       Always,
       [](const Cell& c) { return c.m * c.k * (c.f + c.b); },
       NotSaid,
       [](const Cell&, int) { return 1; }},
      {"gpipe",
       {1},
       kAnyTimes,
       Always,
       [](const Cell& c) { return Work(c) + (c.k - 1) * (c.f + c.b); },
       NotSaid,
       [](const Cell& c, int) { return c.m; }},
      {"1f1b",
       {1},
       kAnyTimes,
       Always,
       [](const Cell& c) { return Work(c) + (c.k - 1) * (c.f + c.b); },
       NotSaid,
       [](const Cell& c, int r) { return std::min(c.k - r, c.m); }},
      {"interleaved",
       {1, 2, 4},
       kAnyTimes,
       EqualGroups,
       [](const Cell& c) -> std::optional<double> {
         if (c.m > c.k && c.m % c.k != 0) return std::nullopt;
         return Work(c) + LoopedBubble(c);
       },
       NotSaid,
       [](const Cell& c, int r) {
         return std::min(c.v * c.m, (c.v - 1) * c.n + 2 * (c.k - 1 - r) + 1);
       }},
      {"looped-bfs",
       {1, 2, 4},
       kAnyTimes,
       Always,
       [](const Cell& c) { return Work(c) + LoopedBubble(c); },
       NotSaid,
       [](const Cell& c, int) { return c.v * c.m; }},
      {"zb-h1",
       {1},
       kShortWeightTimes,
       Always,
       [](const Cell& c) -> std::optional<double> {
         if (c.m >= c.k) return Work(c) + (c.k - 1) * (c.f + c.i - c.w);
         if (c.f != 1 || c.i != 1 || c.w != 1) return std::nullopt;
         return 2 * c.m + 2 * c.k - 1;
       },
       NotSaid,
       [](const Cell& c, int) { return std::min(c.k, c.m); }},
      {"zb-h2",
       {1},
       kUnitTimes,
       Always,
       [](const Cell& c) -> std::optional<double> {
         if (c.m < 2 * c.k - 1) return std::nullopt;
         return 3 * c.m + c.k - 1;
       },
       [](const Cell& c) -> std::optional<double> {
         if (c.m < c.k) return std::nullopt;
         return std::max(0, 2 * c.k - 1 - c.m);
       },
       [](const Cell& c, int) -> std::optional<int> {
         if (c.m < 2 * c.k - 1) return std::nullopt;
         return 2 * c.k - 1;
       }},
      {"zb1p-interleaved",
       {1, 2, 4},
       kShortWeightTimes,
       EqualGroups,
       [](const Cell& c) -> std::optional<double> {
         if (c.m < c.k) return std::nullopt;
         return Work(c) + (c.k - 1) * (c.f + c.i - c.w) / c.v;
       },
       NotSaid,
       [](const Cell& c, int) {
         return std::min(c.v * c.m, (c.v - 1) * c.n + c.k);
       }},
      {"zb-v",
       {2},
       kUnitTimes,
       Always,
       [](const Cell& c) -> std::optional<double> {
         if (c.m < 2 * c.k - 1) return std::nullopt;
         return 3 * c.m + (c.k - 1) / 2.0;
       },
       [](const Cell& c) -> std::optional<double> {
         if (c.m < 2 * c.k - 1) return std::nullopt;
         return 0;
       },
       [](const Cell& c, int) -> std::optional<int> {
         if (c.m < 2 * c.k - 1) return std::nullopt;
         return 2 * c.k;
       }},
      {"v-half", {2}, kUnitTimes, Always, NotSaid, NotSaid, PeakNotSaid},
      {"v-min", {2}, kUnitTimes, Always, NotSaid, NotSaid, PeakNotSaid},
      {"dualpipe-v",
       {2},
       kUnitTimes,
       [](const Shape& shape) {
         return shape.micro_batches >= 2 * shape.ranks;
       },
       [](const Cell& c) { return 3 * c.m + c.k / 2.0; },
       NotSaid,
       [](const Cell& c, int) { return 2 * c.k + 1; }},
  };
  return *forms;
}

class FormTest : public ::testing::TestWithParam<Form> {
 protected:
  // Every cell, legal or not: {K, v, M}.
  template <typename Check>
  void ForEveryShape(const Check& check) const {
    for (const int ranks : {2, 3, 4, 8}) {
      for (int micro_batches = 1; micro_batches <= 4 * ranks; ++micro_batches) {
        for (const int chunks : GetParam().chunks) {
          SCOPED_TRACE(
              absl::StrCat("K=", ranks, " v=", chunks, " M=", micro_batches));
          check(Shape{.ranks = ranks,
                      .chunks = chunks,
                      .micro_batches = micro_batches});
        }
      }
    }
  }

  // Every cell that has a meaning, for every of its times.
  template <typename Check>
  void ForEveryCell(const Check& check) const {
    ForEveryShape([&](const Shape& shape) {
      if (!GetParam().legal(shape)) return;
      ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                           Generate(GetParam().name, shape));
      for (const RankTimes& times : GetParam().times) {
        ASSERT_OK_AND_ASSIGN(const SimulatedStep run,
                             SimulateStep(schedule, times));
        check(Cell{.run = run,
                   .times = times,
                   .k = shape.ranks,
                   .m = shape.micro_batches,
                   .v = shape.chunks});
      }
    });
  }
};

TEST_P(FormTest, IsWhatIsSimulated) {
  const Form& form = GetParam();
  ForEveryCell([&](const Cell& c) {
    for (const RankSimulation& rank : c.run.simulation.ranks) {
      EXPECT_NEAR(rank.busy, Work(c), kNear);
    }
    EXPECT_NEAR(c.run.simulation.bubble_rate, 1 - Work(c) / c.run.makespan(),
                kNear);
    if (const auto makespan = form.makespan(c); makespan.has_value()) {
      EXPECT_NEAR(c.run.makespan(), *makespan, kNear);
    }
    if (const auto bubble = form.span_bubble(c); bubble.has_value()) {
      EXPECT_NEAR(c.run.span_bubble(), *bubble, kNear);
    }
    for (int r = 0; r < c.k; ++r) {
      if (const auto peak = form.peak(c, r); peak.has_value()) {
        EXPECT_EQ(c.run.simulation.ranks[r].peak_in_flight, *peak)
            << "rank " << r;
      }
    }
  });
}

// The form that users are shown is there exactly where the table has one.
TEST_P(FormTest, AsPrintedIsWhatIsSimulatedAtUnitTimes) {
  const Form& form = GetParam();
  ForEveryCell([&](const Cell& c) {
    if (c.f != 1 || c.i != 1 || c.w != 1) return;
    const auto printed = ClosedFormOf(
        form.name, {.ranks = c.k, .chunks = c.v, .micro_batches = c.m});
    ASSERT_EQ(printed.has_value(), form.makespan(c).has_value());
    if (!printed.has_value()) return;
    EXPECT_FALSE(printed->formula.empty());
    EXPECT_NEAR(printed->bubble_rate, c.run.simulation.bubble_rate, kNear);
  });
}

TEST_P(FormTest, IsRefusedExactlyWhereItHasNoMeaning) {
  ForEveryShape([&](const Shape& shape) {
    EXPECT_EQ(Generate(GetParam().name, shape).ok(), GetParam().legal(shape));
  });
}

TEST_P(FormTest, OneRankHasNoBubble) {
  for (const int chunks : GetParam().chunks) {
    for (const int micro_batches : {2, 3, 5}) {
      ASSERT_OK_AND_ASSIGN(
          const Schedule schedule,
          Generate(GetParam().name,
                   {.chunks = chunks, .micro_batches = micro_batches}));
      ASSERT_OK_AND_ASSIGN(const SimulatedStep run, SimulateStep(schedule));
      EXPECT_NEAR(run.makespan(), 3 * micro_batches, kNear);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, FormTest, ::testing::ValuesIn(Forms()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Forms, AreOfAllNamesThatAreGenerated) {
  std::vector<absl::string_view> names;
  for (const Form& form : Forms()) names.push_back(form.name);
  for (const absl::string_view name : GeneratorNames()) {
    if (name == "auto") continue;  // Whatever is best: auto_schedule_test.cc.
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_FALSE(ClosedFormOf("file:1f1b", {}).has_value());
  EXPECT_FALSE(ClosedFormOf("zb-v", {.micro_batches = 4}).has_value());
}

// Without transfers a rank that never waits for a slot needs none beyond the
// activations in flight, and one gradient slot an edge.
TEST(Forms, WithoutChunksCapacitiesAreTheLeastPossible) {
  for (const absl::string_view name : {"naive", "gpipe", "1f1b"}) {
    for (const int ranks : {2, 3, 4, 8}) {
      for (const int micro_batches : {1, ranks - 1, ranks, 4 * ranks}) {
        ASSERT_OK_AND_ASSIGN(
            const Schedule schedule,
            Generate(name, {.ranks = ranks, .micro_batches = micro_batches}));
        ASSERT_OK_AND_ASSIGN(const SimulatedStep run, SimulateStep(schedule));
        ASSERT_EQ(run.program.edges.size(), 2u * (ranks - 1));
        for (const Edge& edge : run.program.edges) {
          EXPECT_EQ(edge.messages, micro_batches);
          if (edge.kind == EdgeKind::kGradient) {
            EXPECT_EQ(edge.capacity, 1);
          }
        }
        for (const StageSlots& stage : run.program.stages) {
          EXPECT_EQ(stage.ahead(), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
