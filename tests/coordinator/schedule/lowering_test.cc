#include "coordinator/schedule/lowering.h"

#include <limits>
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
  for (const Schedule& schedule : EverySchedule(1, 4)) {
    SCOPED_TRACE(schedule.name);
    ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                         Lower(schedule, {.tied_embedding = true}));
    EXPECT_TRUE(program.edges.empty());
    EXPECT_EQ(program.steps[0].size(), schedule.orders[0].size() + 1);
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
      *Generate("zb-v", {.ranks = 2, .chunks = 2, .micro_batches = 3});
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
  Costs costs = UniformCosts({.ranks = 3}, {});
  costs.bytes.tied = 10;
  costs.seconds_per_byte = 0.1;
  costs.tied_add = 0.5;
  ASSERT_OK_AND_ASSIGN(const Simulation simulation, Simulate(program, costs));
  EXPECT_DOUBLE_EQ(simulation.makespan, 9 + 0.5 + 1);
}

TEST(Lower, ATiedEmbeddingOnOneRankNeedsNoEdgeAndReducesAfterBothStages) {
  const Schedule schedule =
      *Generate("zb-v", {.ranks = 2, .chunks = 2, .micro_batches = 2});
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

// More than a slot or a buffer a message are never used.
TEST(Lower, GivesNoEdgeMoreSlotsOrBuffersThanMessages) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 3}));
  constexpr int kMany = std::numeric_limits<int>::max();
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program,
                       LowerVerified(schedule, {.tied_embedding = true,
                                                .send_buffers = kMany,
                                                .uniform_slots = kMany}));
  for (const Edge& edge : program.edges) {
    EXPECT_EQ(edge.capacity, edge.messages) << ToString(edge);
    EXPECT_EQ(edge.send_buffers, edge.messages) << ToString(edge);
  }
  EXPECT_OK(LowerVerified(schedule, {.send_buffers = kMany}));
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
  options.costs = UniformCosts({.ranks = 3}, {});
  EXPECT_THAT(Lower(schedule, options), StatusIs(invalid, HasSubstr("stages")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
