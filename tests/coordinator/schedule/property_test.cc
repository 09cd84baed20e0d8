// What holds for every generated schedule of every shape: over 5,000 cells of
// (schedule, K, M, v), the same ones in each run.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/capacity.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/slot_numbers.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/coordinator/schedule/order_rules.h"
#include "tests/coordinator/schedule/rule_oracle.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Cell {
  const NamedSchedule* row;
  Shape shape;
};

std::string ToString(const Cell& cell) {
  return absl::StrCat(cell.row->name, " K=", cell.shape.ranks,
                      " M=", cell.shape.micro_batches,
                      " v=", cell.shape.chunks);
}

// The domains of docs/schedules.md: elsewhere a schedule has no meaning.
bool HasMeaning(const Cell& cell) {
  const int ranks = cell.shape.ranks;
  const int micro_batches = cell.shape.micro_batches;
  switch (cell.row->value) {
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kZb1pInterleaved:
      return micro_batches % std::max(1, micro_batches / ranks) == 0;
    case ScheduleKind::kDualpipeV:
      return micro_batches >= 2 * ranks;
    default:
      return true;
  }
}

// M below, at and above every border that a schedule has, and some others up to
// 4K.
std::set<int> MicroBatches(int ranks, std::mt19937* random) {
  std::set<int> all;
  for (const int m :
       {1, 2, 3, ranks - 1, ranks, ranks + 1, 2 * ranks - 2, 2 * ranks - 1,
        2 * ranks, 2 * ranks + 1, 3 * ranks, 4 * ranks - 1, 4 * ranks}) {
    if (m >= 1 && m <= 4 * ranks) all.insert(m);
  }
  for (int i = 0; i < 12; ++i) all.insert(1 + (*random)() % (4 * ranks));
  return all;
}

// `auto` has tests of its own: it takes longer, and what it finds depends on
// times.
std::vector<Cell> Cells() {
  std::mt19937 random(20261130);
  std::vector<Cell> cells;
  for (const NamedSchedule& row : kNamedSchedules) {
    if (row.value == ScheduleKind::kAuto) continue;
    for (int ranks = 1; ranks <= 16; ++ranks) {
      for (int chunks = 1; chunks <= 4; ++chunks) {
        if (row.fixed_chunks.value_or(chunks) != chunks) continue;
        for (const int m : MicroBatches(ranks, &random)) {
          cells.push_back(
              {.row = &row,
               .shape = {
                   .ranks = ranks, .chunks = chunks, .micro_batches = m}});
        }
      }
    }
  }
  return cells;
}

// Calls check(cell, schedule) for every `stride`-th of the cells with a meaning
// and at most `most` commands; returns how many.
template <typename Check>
int ForEachSchedule(int stride, int most, const Check& check) {
  int checked = 0;
  int index = 0;
  for (const Cell& cell : Cells()) {
    if (!HasMeaning(cell)) continue;
    if (3 * cell.shape.ranks * cell.shape.chunks * cell.shape.micro_batches >
        most) {
      continue;
    }
    if (index++ % stride != 0) continue;
    SCOPED_TRACE(ToString(cell));
    const absl::StatusOr<Schedule> schedule =
        Generate(cell.row->name, cell.shape);
    EXPECT_OK(schedule.status());
    if (!schedule.ok()) return checked;
    check(cell, *schedule);
    if (::testing::Test::HasFailure()) return checked;
    ++checked;
  }
  return checked;
}

// Costs of stages that differ, in eighths; the same for one number.
LoweringOptions UnevenOptions(const Schedule& schedule, int number) {
  std::mt19937 random(number);
  LoweringOptions options;
  for (int s = 0; s < schedule.stages(); ++s) {
    options.costs.stages.push_back(
        {.forward = RandomEighths(&random, 2, 10),
         .backward_input = RandomEighths(&random, 2, 10),
         .backward_weight = RandomEighths(&random, 1, 10)});
  }
  options.costs.latency = RandomEighths(&random, 0, 4);
  options.costs.bytes = {.activation = 2, .gradient = 1, .tied = 3};
  options.costs.seconds_per_byte = 0.125;
  options.costs.tied_add = 0.25;
  options.tied_embedding = number % 3 == 0;
  options.reduce_replicas = number % 4 == 0;
  return options;
}

constexpr int kAnySize = 1 << 20;

TEST(EverySchedule, IsProvedInOverFiveThousandCells) {
  int number = 0;
  const int cells =
      ForEachSchedule(1, kAnySize, [&](const Cell&, const Schedule& schedule) {
        ++number;
        ASSERT_OK(Verify(schedule, {.tied_embedding = number % 3 == 0,
                                    .reduce_replicas = number % 4 == 0}));
      });
  EXPECT_GE(cells, 5000);
  RecordProperty("cells", cells);
}

TEST(EverySchedule, IsRefusedWhereItHasNoMeaning) {
  int refused = 0;
  for (const Cell& cell : Cells()) {
    if (HasMeaning(cell)) continue;
    ++refused;
    ASSERT_THAT(Generate(cell.row->name, cell.shape),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << ToString(cell);
  }
  EXPECT_GT(refused, 100);
}

TEST(EverySchedule, IsCorrectByTheRulesSaidOnceMore) {
  EXPECT_GT(ForEachSchedule(7, 1500,
                            [](const Cell&, const Schedule& schedule) {
                              ASSERT_TRUE(IsCorrect(schedule));
                            }),
            100);
}

TEST(EverySchedule, IsTheSameEveryTime) {
  const int cells =
      ForEachSchedule(11, kAnySize, [](const Cell& cell, const Schedule& one) {
        ASSERT_OK_AND_ASSIGN(const Schedule other,
                             Generate(cell.row->name, cell.shape));
        EXPECT_EQ(one.orders, other.orders);
        const LoweringOptions options =
            UnevenOptions(one, cell.shape.micro_batches);
        ASSERT_OK_AND_ASSIGN(const LoweredProgram a, Lower(one, options));
        ASSERT_OK_AND_ASSIGN(const LoweredProgram b, Lower(other, options));
        for (size_t e = 0; e < a.edges.size(); ++e) {
          EXPECT_EQ(a.edges[e].capacity, b.edges[e].capacity);
        }
        ASSERT_OK_AND_ASSIGN(const Simulation x, Simulate(a, options.costs));
        ASSERT_OK_AND_ASSIGN(const Simulation y, Simulate(b, options.costs));
        EXPECT_EQ(x.makespan, y.makespan);
      });
  EXPECT_GT(cells, 100);
}

TEST(EverySchedule, IsReadBackFromItsTextForm) {
  const int cells = ForEachSchedule(
      5, kAnySize, [](const Cell& cell, const Schedule& schedule) {
        ASSERT_OK_AND_ASSIGN(
            const Schedule read,
            ParseCsv(PrintCsv(schedule),
                     {.ranks = cell.shape.ranks,
                      .micro_batches = cell.shape.micro_batches}));
        EXPECT_EQ(read.orders, schedule.orders);
        EXPECT_EQ(read.placement, schedule.placement);
      });
  EXPECT_GT(cells, 500);
}

// The most activations of one rank in flight, by its row alone.
int PeakInFlight(const std::vector<Command>& row) {
  int in_flight = 0;
  int peak = 0;
  for (const Command& c : row) {
    in_flight += c.op == Op::kForward;
    peak = std::max(peak, in_flight);
    in_flight -= ProducesWeightGradient(c.op);
  }
  EXPECT_EQ(in_flight, 0);
  return peak;
}

TEST(EverySchedule, IsBusyForItsCommandsAndHoldsWhatItsRowsSay) {
  const int cells = ForEachSchedule(
      3, kAnySize, [](const Cell& cell, const Schedule& schedule) {
        const LoweringOptions options =
            UnevenOptions(schedule, cell.shape.micro_batches);
        ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                             LowerVerified(schedule, options));
        ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                             Simulate(program, options.costs));
        const std::vector<std::vector<int>> stages =
            StagesOfRanks(schedule.placement);
        for (int r = 0; r < schedule.ranks(); ++r) {
          double busy = 0;
          int bound = 0;
          for (const int s : stages[r]) {
            const StageTimes& times = options.costs.stages[s];
            busy +=
                times.forward + times.backward_input + times.backward_weight;
            bound += program.stages[s].peak_in_flight;
            EXPECT_LE(program.stages[s].peak_in_flight,
                      program.stages[s].slots);
          }
          const RankSimulation& rank = simulation.ranks[r];
          EXPECT_EQ(rank.busy, busy * schedule.micro_batches);
          EXPECT_EQ(rank.peak_in_flight, PeakInFlight(schedule.orders[r]));
          EXPECT_LE(rank.peak_in_flight, bound);
          EXPECT_LE(rank.last_end - rank.first_start, simulation.makespan);
        }
      });
  EXPECT_GT(cells, 500);
}

// What a rank holds after I may be the larger.
TEST(EverySchedule, FitsInWhatItHoldsAndNotInAByteLess) {
  const int cells = ForEachSchedule(
      13, kAnySize, [](const Cell& cell, const Schedule& schedule) {
        LoweringOptions options;
        for (int s = 0; s < schedule.stages(); ++s) {
          options.memory.stages.push_back(
              {.held_until_input = 10 + s % 3,
               .held_until_weight = 5 + (s + cell.shape.ranks) % 9});
        }
        ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                             Lower(schedule, options));
        ASSERT_OK_AND_ASSIGN(
            const Simulation simulation,
            Simulate(program, UniformCosts(schedule.rank_shape(), {}),
                     options.memory));
        for (const RankSimulation& rank : simulation.ranks) {
          options.memory.limits.push_back(rank.peak_bytes);
        }
        EXPECT_OK(Verify(schedule, options));
        const int rank = cell.shape.micro_batches % schedule.ranks();
        --options.memory.limits[rank];
        EXPECT_THAT(Verify(schedule, options),
                    StatusIs(absl::StatusCode::kResourceExhausted,
                             AllOf(HasSubstr(absl::StrCat("rank ", rank, ",")),
                                   HasSubstr("1 more than the limit"))));
      });
  EXPECT_GT(cells, 300);
}

// The largest idle time of a rank between its first command and its last.
double SpanBubble(const Simulation& simulation) {
  double most = 0;
  for (const RankSimulation& rank : simulation.ranks) {
    most = std::max(most, rank.last_end - rank.first_start - rank.busy);
  }
  return most;
}

TEST(EverySchedule, LosesNoTimeToItsCapacities) {
  const int cells = ForEachSchedule(
      3, kAnySize, [](const Cell& cell, const Schedule& schedule) {
        LoweringOptions options =
            UnevenOptions(schedule, cell.shape.micro_batches + 1);
        ASSERT_OK_AND_ASSIGN(const LoweredProgram computed,
                             Lower(schedule, options));
        options.uniform_slots = schedule.micro_batches;
        ASSERT_OK_AND_ASSIGN(const LoweredProgram unlimited,
                             Lower(schedule, options));
        ASSERT_OK_AND_ASSIGN(const Simulation a,
                             Simulate(computed, options.costs));
        ASSERT_OK_AND_ASSIGN(const Simulation b,
                             Simulate(unlimited, options.costs));
        EXPECT_NEAR(a.makespan, b.makespan, 1e-8 * b.makespan);
        EXPECT_LE(SpanBubble(a), SpanBubble(b) + 1e-8 * b.makespan);
      });
  EXPECT_GT(cells, 500);
}

// capacity.h: the least common bound. With one less on all that have as many
// as it allows, the step takes longer, has a larger span bubble, or stops.
TEST(EverySchedule, NeedsTheCommonBoundOfItsCapacities) {
  int cut = 0;
  ForEachSchedule(3, 6000, [&](const Cell& cell, const Schedule& schedule) {
    const LoweringOptions options =
        UnevenOptions(schedule, cell.shape.micro_batches + 2);
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         Lower(schedule, options));
    LoweredProgram own = program;
    SetOwnSlots(&own);
    const auto slots = [&](const Edge& edge) {
      return edge.lands_in_stash
                 ? edge.capacity - own.stages[edge.target_stage].slots
                 : edge.capacity;
    };
    int bound = 0;
    for (const Edge& edge : program.edges) bound = std::max(bound, slots(edge));
    LoweredProgram less = program;
    bool any = false;
    for (Edge& edge : less.edges) {
      if (slots(edge) < bound || edge.capacity == 1) continue;
      any = true;
      --edge.capacity;
      if (edge.lands_in_stash) --less.stages[edge.target_stage].slots;
    }
    if (!any) return;
    ++cut;
    NumberSlots(&less);
    ASSERT_OK_AND_ASSIGN(const Simulation full,
                         Simulate(program, options.costs));
    const absl::StatusOr<Simulation> with_less = Simulate(less, options.costs);
    if (with_less.ok()) {
      EXPECT_TRUE(with_less->makespan > full.makespan * (1 + 1e-9) ||
                  SpanBubble(*with_less) >
                      SpanBubble(full) + 1e-9 * full.makespan)
          << with_less->makespan << " and " << full.makespan;
    } else {
      EXPECT_THAT(with_less, StatusIs(absl::StatusCode::kFailedPrecondition));
    }
  });
  EXPECT_GT(cut, 300);
}

TEST(EverySchedule, RunsAsSimulatedWithRealSlots) {
  const int cells =
      ForEachSchedule(4, 400, [](const Cell& cell, const Schedule& schedule) {
        const LoweringOptions options =
            UnevenOptions(schedule, cell.shape.micro_batches + 3);
        ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                             Lower(schedule, options));
        ASSERT_OK_AND_ASSIGN(const Simulation simulation,
                             Simulate(program, options.costs));
        const OracleResult played = PlayOut(program, options.costs);
        EXPECT_EQ(played.broken, "");
        EXPECT_TRUE(played.finished);
        EXPECT_EQ(played.makespan, simulation.makespan);
      });
  EXPECT_GT(cells, 200);
}

}  // namespace
}  // namespace penstock::coordinator::schedule
