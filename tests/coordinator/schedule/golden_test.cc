// The generators' output as reviewed text. After a change that is meant the
// files are written anew by the command in CONTRIBUTING.md; then read the
// difference before it is committed.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

struct Cell {
  absl::string_view name;
  Shape shape;
};

std::string FileName(const Cell& cell) {
  const std::string chunks =
      cell.shape.chunks == 1 ? "" : absl::StrCat("_v", cell.shape.chunks);
  return absl::StrCat(std::getenv("PENSTOCK_TEST_DATA"), "/", cell.name, "_k",
                      cell.shape.ranks, chunks, "_m", cell.shape.micro_batches,
                      ".csv");
}

// The order, and in comments what it costs at F = I = W = 1.
std::string Describe(const Schedule& schedule) {
  const Costs costs = UniformCosts(schedule.rank_shape(), {});
  const absl::StatusOr<LoweredProgram> program = Lower(schedule, {});
  EXPECT_OK(program.status());
  const absl::StatusOr<Simulation> simulation = Simulate(*program, costs);
  EXPECT_OK(simulation.status());
  std::string peaks;
  for (const RankSimulation& rank : simulation->ranks) {
    absl::StrAppend(&peaks, " ", rank.peak_in_flight);
  }
  const std::string chunks = schedule.chunks() == 1
                                 ? ""
                                 : absl::StrCat(schedule.chunks(), " chunks, ");
  return absl::StrFormat(
      "# %s: %d ranks, %s%d micro-batches\n"
      "# makespan %g, bubble rate %.1f %%, span bubble rate %.1f %%\n"
      "# peak activations in flight:%s\n%s",
      schedule.name, schedule.ranks(), chunks, schedule.micro_batches,
      simulation->makespan, 100 * simulation->bubble_rate,
      100 * simulation->span_bubble_rate, peaks, PrintCsv(schedule));
}

class GoldenTest : public ::testing::TestWithParam<Cell> {};

TEST_P(GoldenTest, EqualsItsFile) {
  const Cell& cell = GetParam();
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate(cell.name, cell.shape));
  const std::string text = Describe(schedule);
  if (std::getenv("PENSTOCK_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(FileName(cell), std::ios::binary) << text;
  }
  std::ifstream file(FileName(cell), std::ios::binary);
  ASSERT_TRUE(file.is_open()) << FileName(cell);
  const std::string golden((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text, golden) << FileName(cell);

  // The file is a schedule file as a user would give it.
  ASSERT_OK_AND_ASSIGN(
      const Schedule read,
      ParseCsv(golden, {.ranks = cell.shape.ranks,
                        .micro_batches = cell.shape.micro_batches}));
  EXPECT_EQ(read.orders, schedule.orders);
  EXPECT_OK(Verify(read, {}));
}

// A small cell of each schedule, and what no closed form covers: M below, at
// and above K, one micro-batch, groups that are not of K.
constexpr Cell kCells[] = {
    // clang-format off
    // {name, {K, v, M}}
    {"naive", {3, 1, 2}},
    {"gpipe", {4, 1, 4}}, {"gpipe", {4, 1, 2}},
    {"1f1b", {4, 1, 8}}, {"1f1b", {4, 1, 5}}, {"1f1b", {4, 1, 4}},
    {"1f1b", {4, 1, 3}}, {"1f1b", {4, 1, 1}}, {"1f1b", {1, 1, 3}},
    {"interleaved", {2, 2, 4}}, {"interleaved", {4, 2, 8}},
    {"interleaved", {4, 2, 10}}, {"interleaved", {4, 2, 5}},
    {"interleaved", {4, 2, 3}}, {"interleaved", {4, 2, 1}},
    {"looped-bfs", {2, 2, 3}}, {"looped-bfs", {4, 2, 1}},
    {"zb-h1", {4, 1, 8}}, {"zb-h1", {4, 1, 3}}, {"zb-h1", {4, 1, 1}},
    {"zb-h2", {4, 1, 8}}, {"zb-h2", {4, 1, 5}}, {"zb-h2", {4, 1, 3}},
    {"zb-h2", {4, 1, 1}},
    {"zb1p-interleaved", {2, 2, 4}}, {"zb1p-interleaved", {4, 2, 10}},
    {"zb1p-interleaved", {4, 2, 3}}, {"zb1p-interleaved", {4, 2, 1}},
    {"zb-v", {3, 2, 6}}, {"zb-v", {4, 2, 5}}, {"zb-v", {4, 2, 4}},
    {"zb-v", {4, 2, 3}}, {"zb-v", {4, 2, 1}},
    {"v-half", {3, 2, 6}}, {"v-half", {4, 2, 8}}, {"v-half", {4, 2, 3}},
    {"v-half", {4, 2, 1}},
    {"v-min", {3, 2, 6}}, {"v-min", {4, 2, 8}}, {"v-min", {4, 2, 3}},
    {"v-min", {4, 2, 1}},
    {"dualpipe-v", {2, 2, 4}}, {"dualpipe-v", {3, 2, 7}},
    // clang-format on
};

INSTANTIATE_TEST_SUITE_P(Schedules, GoldenTest, ::testing::ValuesIn(kCells),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return absl::StrCat(name, "_k",
                                               info.param.shape.ranks, "v",
                                               info.param.shape.chunks, "m",
                                               info.param.shape.micro_batches);
                         });

}  // namespace
}  // namespace penstock::coordinator::schedule
