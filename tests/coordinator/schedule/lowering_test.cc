#include "coordinator/schedule/lowering.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "1F0 stash 0 in 0#0@0 out 2#0@0": edge#message@slot; a slot without an edge
// is a local hand-over.
std::string Print(const LoweredStep& step) {
  std::string text = ToString(step);
  if (step.stash_slot != kNone) {
    absl::StrAppend(&text, " stash ", step.stash_slot);
  }
  const auto port = [&](absl::string_view name, int edge, int message,
                        int slot) {
    if (edge != kNone) {
      absl::StrAppend(&text, " ", name, " ", edge, "#", message, "@", slot);
    } else if (slot != kNone) {
      absl::StrAppend(&text, " ", name, " @", slot);
    }
  };
  port("in", step.receive_edge, step.receive_message, step.receive_slot);
  port("out", step.send_edge, step.send_message, step.send_slot);
  return text;
}

std::vector<std::string> Print(const LoweredProgram& program, int rank) {
  std::vector<std::string> lines;
  for (const LoweredStep& step : program.steps[rank]) {
    lines.push_back(Print(step));
  }
  return lines;
}

std::vector<std::string> Kinds(const LoweredProgram& program, int rank) {
  std::vector<std::string> kinds;
  for (const LoweredStep& step : program.steps[rank]) {
    kinds.push_back(ToString(step));
  }
  return kinds;
}

TEST(Lower, GivesEachCommandItsSlotsAndEdges) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 3}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  ASSERT_EQ(program.edges.size(), 2u);
  EXPECT_EQ(ToString(program.edges[0]), "activation 0->1");
  EXPECT_EQ(ToString(program.edges[1]), "gradient 1->0");
  EXPECT_TRUE(program.edges[0].lands_in_stash);
  EXPECT_EQ(program.edges[0].capacity, program.stages[1].slots);
  EXPECT_THAT(
      Print(program, 0),
      ElementsAre("0F0 stash 0 in @0 out 0#0@0", "0F1 stash 1 in @1 out 0#1@0",
                  "0B0 stash 0 in 1#0@0",  //
                  "0F2 stash 0 in @0 out 0#2@0",
                  "0B1 stash 1 in 1#1@0",  //
                  "0B2 stash 0 in 1#2@0", "barrier"));
  EXPECT_THAT(
      Print(program, 1),
      ElementsAre("1F0 stash 0 in 0#0@0", "1B0 stash 0 out 1#0@0",
                  "1F1 stash 0 in 0#1@0", "1B1 stash 0 out 1#1@0",
                  "1F2 stash 0 in 0#2@0", "1B2 stash 0 out 1#2@0", "barrier"));
}

TEST(Lower, OneRankHasNoEdges) {
  for (const absl::string_view name : GeneratorNames()) {
    ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                         Generate(name, {.micro_batches = 4}));
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         Lower(schedule, {.tied_embedding = true}));
    EXPECT_TRUE(program.edges.empty());
    EXPECT_EQ(program.steps[0].size(), 9u);
    EXPECT_OK(VerifyLowered(program));
  }
}

TEST(Lower, HandsOverBetweenStagesOfOneRankWithoutAnEdge) {
  // K = 1, v = 2: everything is local.
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       ParseCsv("0F0,1F0,0F1,1I0,0I0,1W0,0W0,1F1,1B1,0B1\n",
                                {.ranks = 1, .micro_batches = 2}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  EXPECT_TRUE(program.edges.empty());
  // Stage 1 has one activation in flight at a time, but micro-batch 1's input
  // is there from 0F1 on.
  EXPECT_EQ(program.stages[1].peak_in_flight, 1);
  EXPECT_EQ(program.stages[1].slots, 2);
  EXPECT_EQ(program.stages[0].local_gradient_slots, 1);
  EXPECT_THAT(Print(program, 0),
              ElementsAre("0F0 stash 0 in @0 out @0", "1F0 stash 0 in @0",
                          "0F1 stash 1 in @1 out @1", "1I0 stash 0 out @0",
                          "0I0 stash 0 in @0", "1W0 stash 0", "0W0 stash 0",
                          "1F1 stash 1 in @1", "1B1 stash 1 out @0",
                          "0B1 stash 1 in @0", "barrier"));
}

TEST(Lower, TheTurnOfAVIsLocal) {
  const Schedule schedule =
      GreedyV({.ranks = 2, .chunks = 2, .micro_batches = 3});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  std::vector<std::string> edges;
  for (const Edge& edge : program.edges) edges.push_back(ToString(edge));
  EXPECT_THAT(edges, ElementsAre("activation 0->1", "gradient 1->0",
                                 "activation 2->3", "gradient 3->2"));
  EXPECT_OK(VerifyLowered(program));
}

TEST(Lower, ExchangesTheTiedGradientBetweenHeadAndEmbedding) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("gpipe", {.ranks = 3, .micro_batches = 1}));
  ASSERT_OK_AND_ASSIGN(
      const LoweredProgram program,
      Lower(schedule, {.tied_embedding = true, .reduce_replicas = true}));
  EXPECT_EQ(ToString(program.edges[4]), "tied gradient 2->0");
  EXPECT_EQ(ToString(program.edges[5]), "tied sum 0->2");
  EXPECT_EQ(program.edges[4].messages, 1);
  EXPECT_THAT(Kinds(program, 0), ElementsAre("0F0", "0B0", "tied-reduce",
                                             "replica-reduce 0", "barrier"));
  EXPECT_THAT(Kinds(program, 1),
              ElementsAre("1F0", "1B0", "replica-reduce 1", "barrier"));
  EXPECT_THAT(Kinds(program, 2),
              ElementsAre("2F0", "2B0", "tied-send", "tied-receive",
                          "replica-reduce 2", "barrier"));
  EXPECT_EQ(Print(program.steps[0][2]), "tied-reduce in 4#0@0 out 5#0@0");

  // The exchange is in the step's time.
  Costs costs = UniformCosts(3, 1, {});
  costs.bytes.tied = 10;
  costs.seconds_per_byte = 0.1;
  costs.tied_add = 0.5;
  ASSERT_OK_AND_ASSIGN(const Simulation simulation, Simulate(program, costs));
  EXPECT_DOUBLE_EQ(simulation.makespan, 9 + 0.5 + 1);
}

TEST(Lower, ATiedEmbeddingOnOneRankNeedsNoEdgeAndReducesAfterBothStages) {
  const Schedule schedule =
      GreedyV({.ranks = 2, .chunks = 2, .micro_batches = 2});
  ASSERT_OK_AND_ASSIGN(
      const LoweredProgram program,
      Lower(schedule, {.tied_embedding = true, .reduce_replicas = true}));
  for (const Edge& edge : program.edges) {
    EXPECT_NE(edge.kind, EdgeKind::kTiedGradient);
  }
  std::vector<std::string> kinds = Kinds(program, 0);
  kinds.erase(kinds.begin(), kinds.end() - 3);
  EXPECT_THAT(kinds,
              ElementsAre("replica-reduce 3", "replica-reduce 0", "barrier"));
  EXPECT_OK(VerifyLowered(program));
}

// What a schedule needs where every edge has the same number of slots and sends
// block.
struct Slots {
  int most_that_deadlocks = -1;
  int least_at_full_speed = 0;
};
Slots UniformSlots(const Schedule& schedule, int send_buffers,
                   double transfer) {
  const Costs costs =
      UniformCosts(schedule.ranks(), schedule.chunks(), {1, 1, 1, transfer});
  const auto makespan = [&](int slots) -> std::optional<double> {
    const absl::StatusOr<LoweredProgram> program =
        Lower(schedule, {.send_buffers = send_buffers, .uniform_slots = slots});
    if (!program.ok()) {
      EXPECT_THAT(program, StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("deadlock")));
      return std::nullopt;
    }
    return Simulate(*program, costs)->makespan;
  };
  const double unlimited = *makespan(schedule.micro_batches);
  Slots result;
  for (int slots = 0; result.least_at_full_speed == 0; ++slots) {
    const std::optional<double> time = makespan(slots);
    if (!time.has_value()) {
      result.most_that_deadlocks = slots;
    } else if (slots > 0 && *time <= unlimited + 1e-9) {
      result.least_at_full_speed = slots;
    }
  }
  return result;
}

TEST(Capacity, LoopedBfsNeedsThirteenSlotsAndDeadlocksAtThree) {
  const Schedule schedule =
      LoopedBfs({.ranks = 4, .chunks = 2, .micro_batches = 16});
  const Slots blocking = UniformSlots(schedule, 0, 0);
  EXPECT_EQ(blocking.most_that_deadlocks, 3);
  EXPECT_EQ(blocking.least_at_full_speed, 13);  // So 12 is slower.
  // One send buffer holds one message more.
  EXPECT_EQ(UniformSlots(schedule, 1, 0).most_that_deadlocks, 2);
}

TEST(Capacity, InterleavedZb1pNeedsSixSlotsAndDeadlocksAtThree) {
  const Schedule schedule =
      InterleavedZb1p({.ranks = 8, .chunks = 2, .micro_batches = 24});
  const Slots blocking = UniformSlots(schedule, 0, 0);
  EXPECT_EQ(blocking.most_that_deadlocks, 3);
  EXPECT_EQ(blocking.least_at_full_speed, 6);
}

TEST(Capacity, OtherSchedulesNeedTwoSlotsAtMost) {
  for (const auto& [ranks, micro_batches] : {std::pair{4, 8}, {8, 24}}) {
    const Shape shape{.ranks = ranks, .micro_batches = micro_batches};
    const auto gpipe = *Generate("gpipe", shape);
    const auto one_forward_one_backward = *Generate("1f1b", shape);
    // GPipe is a stream: with transfers the second slot takes the next message
    // while the first is worked on.
    EXPECT_EQ(UniformSlots(gpipe, 0, 0.001).least_at_full_speed, 2);
    EXPECT_EQ(
        UniformSlots(one_forward_one_backward, 0, 0.001).least_at_full_speed,
        1);
    EXPECT_EQ(UniformSlots(ZbH2(shape), 0, 0.001).least_at_full_speed, 2);
  }
}

// The stash takes inputs early where its slots lie idle, so a looped schedule
// whose chunks hold all micro-batches needs none ahead.
TEST(Capacity, LoopedBfsNeedsNoSlotAheadOfItsStash) {
  const Schedule schedule =
      LoopedBfs({.ranks = 4, .chunks = 2, .micro_batches = 16});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  for (const StageSlots& stage : program.stages) {
    EXPECT_EQ(stage.slots, 16);
    EXPECT_EQ(stage.ahead(), 0);
  }
  int most = 0;
  for (const Edge& edge : program.edges) {
    if (edge.kind == EdgeKind::kGradient) most = std::max(most, edge.capacity);
  }
  EXPECT_EQ(most, 13);  // The thirteen above.
}

TEST(Capacity, GrowsByASlotAheadWhereTransfersWouldBeExposed) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 16}));
  LoweringOptions options;
  options.costs = UniformCosts(4, 1, {1, 1, 1, 0.1});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, options));
  EXPECT_EQ(program.stages[0].ahead(), 0);
  EXPECT_EQ(program.stages[3].ahead(), 1);
  EXPECT_EQ(program.stages[3].slots, 2);
}

TEST(Capacity, AMemoryLimitTakesSlotsAwayButNeverToADeadlock) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 4, .micro_batches = 16}));
  LoweringOptions options;
  options.costs = UniformCosts(4, 1, {1, 1, 1, 0.1});
  options.memory.stages.assign(4, {.held_until_input = 100});
  options.memory.slot = {.activation = 10, .gradient = 10, .tied = 0};
  // Rank 3: one activation (100), one send buffer (10), one slot ahead (10).
  options.memory.limits.assign(4, 1000);
  options.memory.limits[3] = 120;
  ASSERT_OK_AND_ASSIGN(LoweredProgram program, Lower(schedule, options));
  EXPECT_EQ(program.stages[3].slots, 2);
  options.memory.limits[3] = 119;
  ASSERT_OK_AND_ASSIGN(program, Lower(schedule, options));
  EXPECT_EQ(program.stages[3].slots, 1);
  EXPECT_OK(VerifyLowered(program, options.memory));
  options.memory.limits[3] = 109;
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 3 needs 110 bytes with the fewest "
                                 "slots, 1 more than its limit of 109")));
}

TEST(Capacity, AMemoryLimitThatWouldDeadlockIsRefused) {
  // Looped BFS with 1 gradient slot an edge deadlocks.
  const Schedule schedule =
      LoopedBfs({.ranks = 4, .chunks = 2, .micro_batches = 16});
  LoweringOptions options;
  options.memory.slot.gradient = 1;
  options.memory.limits.assign(4, 4);
  EXPECT_THAT(Lower(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the slots that fit in the memory limits "
                                 "deadlock")));
}

TEST(Lower, RefusesOptionsThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 2}));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Lower(schedule, {.send_buffers = -1}),
              StatusIs(invalid, HasSubstr("at least 0")));
  EXPECT_THAT(Lower(schedule, {.uniform_slots = -1}),
              StatusIs(invalid, HasSubstr("at least 0")));
  LoweringOptions options;
  options.costs = UniformCosts(3, 1, {});
  EXPECT_THAT(Lower(schedule, options), StatusIs(invalid, HasSubstr("stages")));
}

// Damages to a lowered program, as if it came from elsewhere.
class VerifyLoweredTest : public ::testing::Test {
 protected:
  VerifyLoweredTest() {
    const Schedule schedule =
        InterleavedZb1p({.ranks = 2, .chunks = 2, .micro_batches = 4});
    program_ =
        *Lower(schedule, {.tied_embedding = true, .reduce_replicas = true});
  }
  int Find(int rank, const std::string& step) const {
    const std::vector<std::string> kinds = Kinds(program_, rank);
    const auto at = std::find(kinds.begin(), kinds.end(), step);
    EXPECT_NE(at, kinds.end()) << step;
    return static_cast<int>(at - kinds.begin());
  }
  LoweredStep& Step(int rank, const std::string& step) {
    return program_.steps[rank][Find(rank, step)];
  }
  void ExpectRefused(const std::string& message) const {
    EXPECT_THAT(
        VerifyLowered(program_),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  LoweredProgram program_;
};

TEST_F(VerifyLoweredTest, AcceptsWhatLowerMakes) {
  EXPECT_OK(VerifyLowered(program_));
}

TEST_F(VerifyLoweredTest, RefusesASendWithoutAReceive) {
  Step(1, "1F2").receive_edge = kNone;
  ExpectRefused("expected 2 of 4");
}

TEST_F(VerifyLoweredTest, RefusesAMessageTakenOutOfOrder) {
  std::swap(Step(1, "1F2").receive_message, Step(1, "1F3").receive_message);
  ExpectRefused(
      "(1F2): its receive is message 3 of activation 0->1, "
      "expected 2");
}

TEST_F(VerifyLoweredTest, RefusesAnEdgeOfOtherStages) {
  Step(1, "1F0").receive_edge = Step(1, "3F0").receive_edge;
  ExpectRefused("does not belong on activation 2->3");
}

TEST_F(VerifyLoweredTest, RefusesAWrongSlot) {
  Step(1, "3F1").stash_slot += 1;
  ExpectRefused("(3F1): uses slots");
}

TEST_F(VerifyLoweredTest, RefusesTooFewStashSlots) {
  for (StageSlots& stage : program_.stages) stage.slots = 1;
  for (Edge& edge : program_.edges) {
    if (edge.lands_in_stash) edge.capacity = 1;
  }
  for (auto& steps : program_.steps) {
    for (LoweredStep& step : steps) {
      if (step.stash_slot == kNone) continue;
      step.stash_slot = 0;
      if (step.command.op == Op::kForward) step.receive_slot = 0;
    }
  }
  ExpectRefused("is not free");
}

TEST_F(VerifyLoweredTest, RefusesAReductionBeforeTheLastW) {
  std::vector<LoweredStep>& steps = program_.steps[1];
  std::rotate(steps.begin(), steps.begin() + Find(1, "replica-reduce 1"),
              steps.begin() + Find(1, "replica-reduce 1") + 1);
  ExpectRefused("(replica-reduce 1): comes before its stage's last W or B");
}

TEST_F(VerifyLoweredTest, RefusesAReductionTwiceOrLeftOut) {
  std::vector<LoweredStep>& steps = program_.steps[1];
  const LoweredStep reduce = steps[Find(1, "replica-reduce 1")];
  steps.insert(steps.end() - 1, reduce);
  ExpectRefused("(replica-reduce 1): is there twice");
  steps.erase(steps.end() - 2);
  steps.erase(steps.begin() + Find(1, "replica-reduce 1"));
  ExpectRefused("rank 1 reduces 1 of its 2 stages");
}

TEST_F(VerifyLoweredTest, RefusesAReductionBeforeTheTiedSum) {
  std::swap(Step(1, "tied-receive"), Step(1, "replica-reduce 3"));
  ExpectRefused("(replica-reduce 3): comes before the tied sum");
}

TEST_F(VerifyLoweredTest, RefusesAMissingBarrier) {
  program_.steps[0].pop_back();
  ExpectRefused("rank 0 has no barrier");
}

TEST_F(VerifyLoweredTest, RefusesADroppedCommand) {
  program_.steps[0].erase(program_.steps[0].begin());
  ExpectRefused("is missing");
}

}  // namespace
}  // namespace penstock::coordinator::schedule
