// Faults that users of other training systems reported of their schedules: that
// their kind cannot happen here. What the verifier refuses is in
// verifier_test.cc, whole grids are in property_test.cc.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/coordinator/schedule/simulated_step.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

SimulatedStep Step(absl::string_view name, const Shape& shape,
                   const RankTimes& times = {}) {
  const absl::StatusOr<Schedule> schedule = Generate(name, shape);
  EXPECT_OK(schedule.status());
  const absl::StatusOr<SimulatedStep> step = SimulateStep(*schedule, times);
  EXPECT_OK(step.status());
  return *step;
}

// They hung at the first micro-batch; a fix then refused GPipe, which works.
TEST(ReportedFaults, FewerMicroBatchesThanRanksAreALargerBubbleAndNoHang) {
  const int ranks = 8;
  for (const auto& [name, chunks] :
       {std::pair{"gpipe", 1}, {"1f1b", 1}, {"interleaved", 2}}) {
    double last_rate = 1;
    for (const int micro_batches : {1, 2, 3, 4, 8}) {
      const SimulatedStep step = Step(
          name,
          {.ranks = ranks, .chunks = chunks, .micro_batches = micro_batches});
      EXPECT_LT(step.simulation.bubble_rate, last_rate)
          << name << " " << micro_batches;
      last_rate = step.simulation.bubble_rate;
    }
  }
}

// Two ranks with two chunks each both wait in a send. With the sends in another
// order they still did; here each edge has slots of its own.
TEST(ReportedFaults, TwoRanksWithTwoChunksDeadlockOnlyWhereSendsBlock) {
  for (const absl::string_view name : {"interleaved", "looped-bfs", "zb-v"}) {
    for (const int micro_batches : {2, 4, 8}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(micro_batches));
      ASSERT_OK_AND_ASSIGN(
          const Schedule schedule,
          Generate(name,
                   {.ranks = 2, .chunks = 2, .micro_batches = micro_batches}));
      EXPECT_THAT(
          Verify(schedule, {.send_buffers = 0, .uniform_slots = 0}),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("deadlock with rendezvous sends; cycle:"),
                         HasSubstr("rank 0, position"),
                         HasSubstr("rank 1, position"))));
      EXPECT_OK(Verify(schedule, {}));
    }
  }
}

// Two messages in flight between the same two ranks could not be told apart.
TEST(ReportedFaults, EachPairOfChunksAndDirectionOfTwoRanksIsAnEdgeOfItsOwn) {
  const SimulatedStep step =
      Step("interleaved", {.ranks = 2, .chunks = 2, .micro_batches = 4});
  std::vector<std::string> edges;
  for (const Edge& edge : step.program.edges) {
    edges.push_back(ToString(edge));
    EXPECT_NE(edge.source_rank, edge.target_rank);
    EXPECT_EQ(edge.messages, 4);
  }
  EXPECT_THAT(edges, UnorderedElementsAre("activation 0->1", "gradient 1->0",
                                          "activation 1->2", "gradient 2->1",
                                          "activation 2->3", "gradient 3->2"));
  // Both ends number each edge's messages from 0, whatever goes on others.
  for (size_t e = 0; e < edges.size(); ++e) {
    std::vector<int> sent, taken;
    for (const auto& steps : step.program.steps) {
      for (const LoweredStep& s : steps) {
        if (s.send_edge == static_cast<int>(e)) sent.push_back(s.send_message);
        if (s.receive_edge == static_cast<int>(e)) {
          taken.push_back(s.receive_message);
        }
      }
    }
    EXPECT_THAT(sent, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(taken, ElementsAre(0, 1, 2, 3));
  }
}

// Receives posted early held up others behind them. Here a message that is not
// needed yet holds up no other edge: the closed form is met with two ranks too,
// and with slots of every number from the computed ones on.
TEST(ReportedFaults, AMessageThatWaitsForItsCommandHoldsUpNoOther) {
  ASSERT_OK_AND_ASSIGN(
      const Schedule schedule,
      Generate("interleaved", {.ranks = 2, .chunks = 2, .micro_batches = 8}));
  ASSERT_OK_AND_ASSIGN(const SimulatedStep step, SimulateStep(schedule));
  EXPECT_DOUBLE_EQ(step.makespan(), 8 * 3 + 1 * 3 / 2.0);
  const Costs costs = UniformCosts(schedule.rank_shape(), {});
  for (const int slots : {2, 3, 8}) {
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         Lower(schedule, {.uniform_slots = slots}));
    ASSERT_OK_AND_ASSIGN(const Simulation simulation, Simulate(program, costs));
    EXPECT_DOUBLE_EQ(simulation.makespan, step.makespan());
  }
}

// ZB-H1 gained nothing because W was not really put off: with each W right
// behind its I the same order takes as long as 1F1B.
TEST(ReportedFaults, ZbH1GainsByWhatItPutsOff) {
  const Shape shape{.ranks = 4, .micro_batches = 16};
  const SimulatedStep delayed = Step("zb-h1", shape);
  Schedule at_once = delayed.schedule;
  int put_off = 0;
  for (std::vector<Command>& row : at_once.orders) {
    std::vector<Command> joined;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].op == Op::kBackwardWeight) continue;
      joined.push_back(row[i]);
      if (row[i].op != Op::kBackwardInput) continue;
      const Command weight{Op::kBackwardWeight, row[i].stage,
                           row[i].micro_batch};
      joined.push_back(weight);
      put_off += i + 1 < row.size() && row[i + 1] != weight;
    }
    row = joined;
  }
  EXPECT_GT(put_off, 0);
  ASSERT_OK_AND_ASSIGN(const SimulatedStep not_delayed, SimulateStep(at_once));
  EXPECT_EQ(delayed.makespan(), 3 * 16 + 3);
  EXPECT_GT(not_delayed.makespan(), delayed.makespan());
}

// Users did not see why interleaved warms up with 2(K - r - 1) forwards. ZB1P
// with its I and W joined is the same order with K - r - 1: without transfers
// it takes as long, with them longer.
TEST(ReportedFaults, TheWarmUpOfInterleavedHidesTransfers) {
  const Shape shape{.ranks = 8, .chunks = 4, .micro_batches = 32};
  ASSERT_OK_AND_ASSIGN(Schedule shorter, Generate("zb1p-interleaved", shape));
  for (std::vector<Command>& row : shorter.orders) {
    std::vector<Command> joined;
    for (Command c : row) {
      if (c.op == Op::kBackwardWeight) continue;
      if (c.op == Op::kBackwardInput) c.op = Op::kBackward;
      joined.push_back(c);
    }
    row = joined;
  }
  for (const double transfer : {0.0, 0.05}) {
    const RankTimes times{.transfer = transfer};
    ASSERT_OK_AND_ASSIGN(const SimulatedStep step,
                         SimulateStep(shorter, times));
    const double whole = Step("interleaved", shape, times).makespan();
    if (transfer == 0) {
      EXPECT_DOUBLE_EQ(step.makespan(), whole);
    } else {
      EXPECT_NEAR(whole, 104.35, 1e-6);
      EXPECT_NEAR(step.makespan(), 113.35, 1e-6);
    }
  }
}

// Users found 1F1B faster than zero-bubble schedules and did not know why. The
// simulation tells: with I longer than W a fixed pattern loses what it gains
// where all are equal.
TEST(ReportedFaults, TheSimulationPredictsWhereAZeroBubbleScheduleLoses) {
  const Shape one{.ranks = 4, .chunks = 1, .micro_batches = 64};
  const Shape two{.ranks = 4, .chunks = 2, .micro_batches = 64};
  const RankTimes equal;
  EXPECT_LT(Step("v-half", two, equal).makespan(),
            Step("1f1b", one, equal).makespan());
  EXPECT_LT(Step("v-min", two, equal).makespan(),
            Step("1f1b", one, equal).makespan());
  const RankTimes unequal{
      .forward = 1, .backward_input = 1.4, .backward_weight = 0.6};
  const double plain = Step("1f1b", one, unequal).makespan();
  EXPECT_GT(Step("v-half", two, unequal).makespan(), plain);
  EXPECT_GT(Step("v-min", two, unequal).makespan(), plain / 0.88);
}

// With many micro-batches no schedule matters: 1F1B is within 2 % of the ideal.
TEST(ReportedFaults,
     TheSimulationPredictsThatManyMicroBatchesLeaveLittleToGain) {
  const double ideal = 3 * 512;
  EXPECT_LT(Step("1f1b", {.ranks = 4, .micro_batches = 512}).makespan(),
            1.02 * ideal);
}

// One limit for all ranks was wrong where they differ.
TEST(ReportedFaults, MemoryLimitsAreEachRanksOwn) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 8}));
  LoweringOptions options;
  options.memory.stages.assign(4, {.held_until_input = 10});
  options.memory.limits = {40, 30, 20, 10};  // K - r in flight.
  EXPECT_OK(Verify(schedule, options));
  options.memory.limits = {40, 30, 19, 40};
  EXPECT_THAT(Verify(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 2, position 1 (2F1): holds 20 bytes of "
                                 "activations, 1 more than the limit of 19")));
}

// "Pop empty queue": a W with nothing stored, or an I whose W never came.
TEST(ReportedFaults, EveryIHasItsWAndEveryWItsI) {
  const CsvOptions one_rank{.ranks = 1, .micro_batches = 2, .name = "s"};
  const auto verify = [&](absl::string_view text) {
    const absl::StatusOr<Schedule> schedule = ParseCsv(text, one_rank);
    EXPECT_OK(schedule.status());
    return Verify(*schedule, {});
  };
  EXPECT_OK(verify("0F0,0F1,0I0,0I1,0W0,0W1\n"));
  EXPECT_THAT(verify("0F0,0F1,0I0,0I1,0W0\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0W1 is missing")));
  EXPECT_THAT(verify("0F0,0F1,0I0,0W0,0W1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0I1 is missing")));
  EXPECT_THAT(verify("0F0,0F1,0I0,0W0,0W1,0I1\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("(0W1): must come after 0I1")));
}

// A flag tied to one phase of the schedule left the rank without that phase out
// of the reduction over replicas; split backwards were never reduced at all.
TEST(ReportedFaults, EveryStageIsReducedOverReplicasAfterItsOwnLastGradient) {
  for (const Schedule& schedule : EverySchedule(3, 6)) {
    SCOPED_TRACE(schedule.name);
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         LowerVerified(schedule, {.reduce_replicas = true}));
    std::multiset<int> reduced;
    for (const auto& steps : program.steps) {
      std::multiset<int> gradients;  // Stages whose W or B came before.
      for (const LoweredStep& step : steps) {
        if (step.releases_stash()) gradients.insert(step.command.stage);
        if (step.kind != StepKind::kReplicaReduce) continue;
        reduced.insert(step.command.stage);
        EXPECT_EQ(gradients.count(step.command.stage), 6u);
      }
    }
    for (int s = 0; s < schedule.stages(); ++s) {
      EXPECT_EQ(reduced.count(s), 1u) << s;
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
