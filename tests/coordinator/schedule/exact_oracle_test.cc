// The oracle of optimal steps against plain enumeration and known optima.
#include "tests/coordinator/schedule/exact_oracle.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// The step of an order as the shipped simulator has it, with unlimited slots;
// nothing where a rank's limit is passed.
std::optional<double> StepOf(const Schedule& schedule,
                             const OracleSetting& setting) {
  LoweringOptions options{.send_buffers = setting.send_buffers,
                          .uniform_slots = setting.micro_batches};
  options.costs = setting.costs;
  options.memory = setting.memory;
  const absl::StatusOr<LoweredProgram> program =
      LowerVerified(schedule, options);
  if (program.status().code() == absl::StatusCode::kResourceExhausted) {
    return std::nullopt;
  }
  EXPECT_OK(program.status());
  return Simulate(*program, setting.costs)->makespan;
}

// Every row of one rank: F, I and W ascend, F before I before W.
void AddRows(int stage, int micro_batches, std::vector<Command>* row,
             std::vector<std::vector<Command>>* rows) {
  int done[3] = {0, 0, 0};
  for (const Command& c : *row) {
    ++done[c.op == Op::kForward ? 0 : c.op == Op::kBackwardInput ? 1 : 2];
  }
  if (done[2] == micro_batches) rows->push_back(*row);
  const auto next = [&](Op op, int micro_batch) {
    row->push_back({op, stage, micro_batch});
    AddRows(stage, micro_batches, row, rows);
    row->pop_back();
  };
  if (done[0] < micro_batches) next(Op::kForward, done[0]);
  if (done[1] < done[0]) next(Op::kBackwardInput, done[1]);
  if (done[2] < done[1]) next(Op::kBackwardWeight, done[2]);
}

// The shortest step of all orders, one after the other.
double ShortestOfAll(const OracleSetting& setting) {
  const int ranks = static_cast<int>(setting.costs.stages.size());
  std::vector<std::vector<std::vector<Command>>> rows(ranks);
  for (int r = 0; r < ranks; ++r) {
    std::vector<Command> row;
    AddRows(r, setting.micro_batches, &row, &rows[r]);
  }
  Schedule schedule{.name = "enumerated",
                    .placement = LoopPlacement({.ranks = ranks}),
                    .micro_batches = setting.micro_batches,
                    .orders = {}};
  schedule.orders.resize(ranks);
  double shortest = std::numeric_limits<double>::infinity();
  std::vector<size_t> choice(ranks, 0);
  for (bool more = true; more;) {
    for (int r = 0; r < ranks; ++r) schedule.orders[r] = rows[r][choice[r]];
    // Rows that no time fits are no orders.
    if (Verify(schedule, {}).ok()) {
      shortest =
          std::min(shortest, StepOf(schedule, setting)
                                 .value_or(std::numeric_limits<double>::max()));
    }
    more = false;
    for (int r = 0; r < ranks && !more; ++r) {
      more = ++choice[r] < rows[r].size();
      if (!more) choice[r] = 0;
    }
  }
  return shortest;
}

int RandomInt(std::mt19937* random, int least, int most) {
  return least + static_cast<int>((*random)() % (most - least + 1));
}

OracleSetting RandomSetting(int ranks, int micro_batches,
                            std::mt19937* random) {
  OracleSetting setting{.micro_batches = micro_batches,
                        .send_buffers = RandomInt(random, 1, 2)};
  for (int s = 0; s < ranks; ++s) {
    setting.costs.stages.push_back(
        {.forward = RandomEighths(random, 1, 16),
         .backward_input = RandomEighths(random, 1, 16),
         .backward_weight = RandomEighths(random, 0, 16)});
    const StageBytes bytes{.held_until_input = RandomInt(random, 1, 4),
                           .held_until_weight = RandomInt(random, 0, 5)};
    setting.memory.stages.push_back(bytes);
    setting.memory.limits.push_back(
        std::max(bytes.held_until_input, bytes.held_until_weight) +
        RandomInt(random, 0, 7));
  }
  if ((*random)() % 2 == 0) setting.costs.latency = RandomEighths(random, 0, 9);
  if ((*random)() % 4 == 0) setting.memory = {};
  return setting;
}

void ExpectOptimumIsTheShortestOfAll(int ranks, int micro_batches, int count) {
  std::mt19937 random(ranks * 100 + micro_batches);
  for (int i = 0; i < count; ++i) {
    const OracleSetting setting = RandomSetting(ranks, micro_batches, &random);
    ASSERT_OK_AND_ASSIGN(const Optimum optimum, FindOptimum(setting, {}));
    ASSERT_TRUE(optimum.proved);
    ASSERT_TRUE(optimum.order.has_value());
    EXPECT_DOUBLE_EQ(optimum.makespan, ShortestOfAll(setting)) << i;
    EXPECT_EQ(StepOf(*optimum.order, setting), optimum.makespan)
        << PrintCsv(*optimum.order);
  }
}

TEST(ExactOracle, EqualsTheShortestOfAllOrders) {
  ExpectOptimumIsTheShortestOfAll(1, 4, 20);
  ExpectOptimumIsTheShortestOfAll(2, 2, 60);
  ExpectOptimumIsTheShortestOfAll(2, 3, 20);
  ExpectOptimumIsTheShortestOfAll(3, 2, 60);
}

OracleSetting Uniform(int ranks, int micro_batches, int64_t activations) {
  OracleSetting setting{.micro_batches = micro_batches};
  setting.costs = UniformCosts({.ranks = ranks}, {});
  setting.memory.stages.assign(ranks, {1, 1});
  setting.memory.limits.assign(ranks, activations);
  return setting;
}

// docs/schedules.md: ZB-H2 takes 3M + K - 1 with 2K - 1 activations, and no
// order takes less however much it holds. ZB-H1 takes as long with K.
TEST(ExactOracle, NoOrderIsShorterThanZbH2) {
  for (const int ranks : {2, 3, 4}) {
    for (const int micro_batches : {4, 8}) {
      for (const int activations : {ranks, 2 * ranks - 1, micro_batches}) {
        if (activations < ranks) continue;
        ASSERT_OK_AND_ASSIGN(
            const Optimum optimum,
            FindOptimum(Uniform(ranks, micro_batches, activations), {}));
        EXPECT_TRUE(optimum.proved);
        EXPECT_EQ(optimum.makespan, 3 * micro_batches + ranks - 1);
      }
    }
  }
}

// With one activation a rank there is only one micro-batch after the other.
TEST(ExactOracle, OneActivationARankLeavesOneMicroBatchInFlight) {
  OracleSetting setting = Uniform(3, 4, 1);
  ASSERT_OK_AND_ASSIGN(const Optimum optimum, FindOptimum(setting, {}));
  EXPECT_TRUE(optimum.proved);
  // F and I down and up; the first rank's W is between two micro-batches.
  EXPECT_EQ(optimum.makespan, 4 * (6 + 1));
}

TEST(ExactOracle, ABoundThatIsTheOptimumIsProvedWithoutAnOrder) {
  ASSERT_OK_AND_ASSIGN(const Optimum optimum,
                       FindOptimum(Uniform(4, 8, 7), {.upper_bound = 27}));
  EXPECT_TRUE(optimum.proved);
  EXPECT_EQ(optimum.makespan, 27);
  EXPECT_FALSE(optimum.order.has_value());
}

TEST(ExactOracle, SaysWhereItCouldNotProveWithinItsBudget) {
  std::mt19937 random(3);
  const OracleSetting setting = RandomSetting(4, 8, &random);
  ASSERT_OK_AND_ASSIGN(const Optimum optimum,
                       FindOptimum(setting, {.most_nodes = 3}));
  EXPECT_FALSE(optimum.proved);
  EXPECT_LT(optimum.lower_bound, optimum.makespan);
}

TEST(ExactOracle, RefusesALimitBelowOneMicroBatch) {
  OracleSetting setting = Uniform(2, 2, 2);
  setting.memory.stages[1].held_until_weight = 3;
  EXPECT_THAT(FindOptimum(setting, {}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 1 needs 3 bytes")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
