// VerifyLowered: lowered programs with one fault each.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
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

TEST_F(VerifyLoweredTest, RefusesTooFewPlacesBetweenIAndW) {
  ASSERT_GE(program_.stages[1].held, 1);
  --program_.stages[1].held;
  ExpectRefused("no place is free for what W needs");
  program_.stages[1].held = program_.micro_batches + 1;
  ExpectRefused("the slots of stage 1 are wrong");
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

// Programs of every schedule with one field of one command changed.
class DamagedProgram : public ::testing::Test {
 protected:
  using Damage = std::function<void(LoweredStep*)>;

  static bool IsSame(const LoweredStep& a, const LoweredStep& b) {
    const auto fields = [](const LoweredStep& s) {
      return std::make_tuple(s.kind, s.command.op, s.command.stage,
                             s.command.micro_batch, s.stash_slot,
                             s.receive_edge, s.receive_message, s.receive_slot,
                             s.send_edge, s.send_message, s.send_slot);
    };
    return fields(a) == fields(b);
  }

  // Applies it to every command for which it changes something.
  static void ExpectAlwaysRefused(const std::string& what,
                                  const Damage& damage) {
    for (const auto& [ranks, micro_batches] : {std::pair{2, 4}, {3, 2}}) {
      for (const Schedule& schedule : EverySchedule(ranks, micro_batches)) {
        ASSERT_OK_AND_ASSIGN(const LoweredProgram original,
                             Lower(schedule, {.tied_embedding = true}));
        LoweredProgram program = original;
        for (int r = 0; r < ranks; ++r) {
          for (size_t p = 0; p < original.steps[r].size(); ++p) {
            const LoweredStep& before = original.steps[r][p];
            LoweredStep& step = program.steps[r][p];
            if (before.kind != StepKind::kCompute) continue;
            damage(&step);
            if (IsSame(step, before)) continue;
            EXPECT_THAT(VerifyLowered(program),
                        StatusIs(absl::StatusCode::kInvalidArgument))
                << schedule.name << ", rank " << r << ", " << ToString(before)
                << ": " << what;
            step = before;
          }
        }
      }
    }
  }
};

// Own places are allocated whether they are held or not: rank 1 has two, the
// second for an input ahead, and one micro-batch in flight.
TEST(VerifyLowered, SaysWhatBytesARankNeeds) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 4}));
  ASSERT_OK_AND_ASSIGN(
      const LoweredProgram program,
      Lower(schedule, {.costs = UniformCosts({.ranks = 2}, {.transfer = 1})}));
  Memory memory{.stages = {{100, 100}, {100, 100}},
                .places = Places::kOwn,
                .slot = {.activation = 7, .gradient = 5},
                .limits = {1000, 204}};
  EXPECT_THAT(
      VerifyLowered(program, memory),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("rank 1 needs 205 bytes (200 of activations, 5 "
                         "of gradient slots and send buffers), 1 more "
                         "than its limit of 204")));
  ++memory.limits[1];
  EXPECT_OK(VerifyLowered(program, memory));
}

TEST_F(DamagedProgram, OfAnotherCommandIsRefused) {
  ExpectAlwaysRefused("micro-batch",
                      [](LoweredStep* s) { ++s->command.micro_batch; });
  ExpectAlwaysRefused("stage", [](LoweredStep* s) { ++s->command.stage; });
  ExpectAlwaysRefused("operation", [](LoweredStep* s) {
    s->command.op =
        s->command.op == Op::kForward ? Op::kBackward : Op::kForward;
  });
  ExpectAlwaysRefused("kind",
                      [](LoweredStep* s) { s->kind = StepKind::kBarrier; });
}

TEST_F(DamagedProgram, OfAnotherSlotIsRefused) {
  ExpectAlwaysRefused("stash", [](LoweredStep* s) { ++s->stash_slot; });
  ExpectAlwaysRefused("receive", [](LoweredStep* s) { ++s->receive_slot; });
  ExpectAlwaysRefused("send", [](LoweredStep* s) { ++s->send_slot; });
}

TEST_F(DamagedProgram, OfAnotherMessageIsRefused) {
  ExpectAlwaysRefused("edge taken from", [](LoweredStep* s) {
    s->receive_edge = s->receive_edge == kNone ? 0 : kNone;
  });
  ExpectAlwaysRefused("edge sent on", [](LoweredStep* s) {
    s->send_edge = s->send_edge == kNone ? 0 : kNone;
  });
  ExpectAlwaysRefused("edge that there is not", [](LoweredStep* s) {
    s->receive_edge = std::numeric_limits<int>::max();
  });
  ExpectAlwaysRefused("edge that there is not", [](LoweredStep* s) {
    s->send_edge = std::numeric_limits<int>::min();
  });
  // Numbers of what is not there mean nothing.
  ExpectAlwaysRefused("number taken", [](LoweredStep* s) {
    s->receive_message += s->receive_edge != kNone;
  });
  ExpectAlwaysRefused("number sent", [](LoweredStep* s) {
    s->send_message += s->send_edge != kNone;
  });
}

}  // namespace
}  // namespace penstock::coordinator::schedule
