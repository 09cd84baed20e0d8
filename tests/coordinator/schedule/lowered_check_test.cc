// VerifyLowered: lowered programs with one fault each.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

std::vector<std::string> Kinds(const LoweredProgram& program, int rank) {
  std::vector<std::string> kinds;
  for (const LoweredStep& step : program.steps[rank]) {
    kinds.push_back(ToString(step));
  }
  return kinds;
}

// Damages to a lowered program, as if it came from elsewhere.
class VerifyLoweredTest : public ::testing::Test {
 protected:
  VerifyLoweredTest() {
    const Schedule schedule = *Generate(
        "zb1p-interleaved", {.ranks = 2, .chunks = 2, .micro_batches = 4});
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

// Before anything is made of that size.
TEST_F(VerifyLoweredTest, RefusesMoreSlotsOrBuffersThanMicroBatches) {
  const LoweredProgram correct = program_;
  constexpr int kMany = std::numeric_limits<int>::max();
  program_.edges[1].capacity = kMany;
  ExpectRefused("gradient 1->0 has a count out of range");
  program_ = correct;
  program_.edges[0].send_buffers = kMany;
  ExpectRefused("activation 0->1 has a count out of range");
  program_ = correct;
  program_.stages[1].local_gradient_slots = kMany;
  ExpectRefused("the slots of stage 1 are wrong");
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
