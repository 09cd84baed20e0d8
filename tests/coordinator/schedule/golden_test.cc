// The generators' output as reviewed text. To write the files anew after a
// change that is meant:
//
//   PENSTOCK_REGENERATE_GOLDEN=1 ctest --preset dev -R
//   coordinator_schedule_golden
//
// then read the difference before it is committed.
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
  return absl::StrCat(std::getenv("PENSTOCK_TEST_DATA"), "/", cell.name, "_k",
                      cell.shape.ranks, "_m", cell.shape.micro_batches, ".csv");
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
  return absl::StrFormat(
      "# %s: %d ranks, %d micro-batches\n"
      "# makespan %g, bubble rate %.1f %%, span bubble rate %.1f %%\n"
      "# peak activations in flight:%s\n%s",
      schedule.name, schedule.ranks(), schedule.micro_batches,
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

INSTANTIATE_TEST_SUITE_P(
    Schedules, GoldenTest,
    ::testing::Values(Cell{"naive", {.ranks = 3, .micro_batches = 2}},
                      Cell{"gpipe", {.ranks = 4, .micro_batches = 4}},
                      Cell{"gpipe", {.ranks = 4, .micro_batches = 2}},
                      Cell{"1f1b", {.ranks = 4, .micro_batches = 8}},
                      Cell{"1f1b", {.ranks = 4, .micro_batches = 5}},
                      Cell{"1f1b", {.ranks = 4, .micro_batches = 4}},
                      Cell{"1f1b", {.ranks = 4, .micro_batches = 3}},
                      Cell{"1f1b", {.ranks = 4, .micro_batches = 1}},
                      Cell{"1f1b", {.ranks = 1, .micro_batches = 3}}),
    [](const auto& info) {
      return absl::StrCat("Cell", info.index, "K", info.param.shape.ranks, "M",
                          info.param.shape.micro_batches);
    });

}  // namespace
}  // namespace penstock::coordinator::schedule
