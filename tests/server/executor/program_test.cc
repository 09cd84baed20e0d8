// What a stage refuses: a table of programs with one thing wrong each. And what
// it makes of good ones.
#include "server/executor/program.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/stage_assignment.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/assignments.h"

namespace penstock::server::executor {
namespace {

using penstock::testing::AssignmentOptions;
using penstock::testing::Assignments;
using penstock::testing::EvaluateCommands;
using penstock::testing::LowerNamed;
using penstock::testing::StatusIs;
using penstock::testing::TinyModel;
using penstock::testing::TrainCommands;
using ::testing::HasSubstr;

// Rank 1 of 3 in 1F1B with M = 4: F0 F1 B0 F2 B1 F3 B2 B3.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lowered_ = LowerNamed({.ranks = 3, .micro_batches = 4});
    ASSERT_OK_AND_ASSIGN(
        assignment_,
        DecodeAssignment(Assignments(lowered_, {.model = TinyModel()})[1]));
    commands_ = TrainCommands(lowered_, 1, 7);
    ASSERT_EQ(commands_.commands_size(), 8);
  }

  absl::Status Lower() const {
    return LowerCommands(assignment_, commands_).status();
  }
  v1::Command& at(int index) { return *commands_.mutable_commands(index); }

  coordinator::schedule::LoweredProgram lowered_;
  StageAssignment assignment_;
  v1::StepCommands commands_;
};

TEST_F(ProgramTest, GoodProgramKeepsTheOrder) {
  ASSERT_OK_AND_ASSIGN(const Program program,
                       LowerCommands(assignment_, commands_));
  EXPECT_EQ(program.step, 7);
  EXPECT_EQ(program.micro_batches, 4);
  std::string order;
  for (const ProgramCommand& command : program.commands) {
    order += CommandName(command.op, command.stage, command.micro_batch) + " ";
  }
  EXPECT_EQ(order, "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3 ");
  EXPECT_TRUE(program.commands.back().last_weight);
  EXPECT_FALSE(program.commands[6].last_weight);
}

TEST_F(ProgramTest, ReceivesArePostedAsSoonAsTheirSlotIsFree) {
  ASSERT_OK_AND_ASSIGN(const Program program,
                       LowerCommands(assignment_, commands_));
  const AssignedChunk& chunk = assignment_.chunks[0];
  const int gradient_slots = assignment_.edges[chunk.gradient_in].end.capacity;
  // Position of a command in the order, counted from 1.
  const auto done = [&program](v1::Op op, int micro_batch) {
    int position = 0;
    for (const ProgramCommand& command : program.commands) {
      ++position;
      if (command.op == op && command.micro_batch == micro_batch) break;
    }
    return position;
  };
  int activations = 0, gradients = 0, newest = 0;
  for (const Post& post : program.posts) {
    EXPECT_GE(post.after, newest);
    newest = post.after;
    const bool activation = post.edge == chunk.activation_in;
    const int slots = activation ? chunk.slots : gradient_slots;
    int& number = activation ? activations : gradients;
    EXPECT_EQ(post.message, number);
    EXPECT_EQ(post.micro_batch, number);
    EXPECT_EQ(post.slot, number % slots);
    // Both are freed by the B of the micro-batch that was there before.
    EXPECT_EQ(post.after,
              number < slots ? 0 : done(v1::OP_BACKWARD, number - slots));
    ++number;
  }
  EXPECT_EQ(activations, 4);
  EXPECT_EQ(gradients, 4);
}

TEST_F(ProgramTest, EvaluationReleasesEachSlotAtOnce) {
  ASSERT_OK_AND_ASSIGN(
      const Program program,
      LowerCommands(assignment_, EvaluateCommands(lowered_, 1, 7, 9)));
  EXPECT_EQ(program.micro_batches, 9);
  for (const ProgramCommand& command : program.commands) {
    EXPECT_TRUE(command.releases);
    EXPECT_FALSE(command.last_weight);
  }
  EXPECT_EQ(program.posts.size(), 9);
}

struct BadProgram {
  std::string name;
  std::function<void(v1::StepCommands&)> spoil;
  std::string error;
};

class BadProgramTest : public ProgramTest,
                       public ::testing::WithParamInterface<BadProgram> {};

TEST_P(BadProgramTest, IsRefusedWithItsPlace) {
  GetParam().spoil(commands_);
  EXPECT_THAT(Lower(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr(GetParam().error)));
}

v1::Command& At(v1::StepCommands& commands, int index) {
  return *commands.mutable_commands(index);
}

INSTANTIATE_TEST_SUITE_P(
    AllRules, BadProgramTest,
    ::testing::Values(
        BadProgram{
            "NoKind",
            [](auto& c) { c.set_kind(v1::StepCommands::KIND_UNSPECIFIED); },
            "step 7: kind 0 is not known"},
        BadProgram{"StepZero", [](auto& c) { c.set_step(0); },
                   "step 0: steps are numbered from 1"},
        BadProgram{"Empty", [](auto& c) { c.clear_commands(); },
                   "step 7: has no commands"},
        BadProgram{"OtherRanksStage", [](auto& c) { At(c, 0).set_stage(2); },
                   "step 7, command 0, 2F0: stage 2 is not on rank 1"},
        BadProgram{"MicroBatchTooLarge",
                   [](auto& c) { At(c, 5).set_micro_batch(4); },
                   "step 7, command 5, 1F4: micro-batch 4 of 4"},
        BadProgram{"MicroBatchNegative",
                   [](auto& c) { At(c, 0).set_micro_batch(-1); },
                   "command 0, 1F-1: micro-batch -1 of 4"},
        BadProgram{"NoOperation",
                   [](auto& c) { At(c, 0).set_op(v1::OP_UNSPECIFIED); },
                   "command 0, 1?0: operation 0 is not known"},
        BadProgram{"WrongSlot", [](auto& c) { At(c, 1).set_slot(0); },
                   "command 1, 1F1: slot 0, but micro-batch 1 of"},
        BadProgram{"ForwardTwice",
                   [](auto& c) { *c.add_commands() = At(c, 0); },
                   "command 8, 1F0: is there twice"},
        BadProgram{"BackwardTwice",
                   [](auto& c) { *c.add_commands() = At(c, 2); },
                   "command 8, 1B0: its backward is there twice"},
        BadProgram{"BackwardFirst", [](auto& c) { At(c, 0).Swap(&At(c, 2)); },
                   "command 0, 1B0: comes before its forward"},
        BadProgram{"WeightFirst",
                   [](auto& c) { At(c, 2).set_op(v1::OP_BACKWARD_WEIGHT); },
                   "command 2, 1W0: comes before its input gradient"},
        BadProgram{"SplitWithoutPlaces",
                   [](auto& c) { At(c, 2).set_op(v1::OP_BACKWARD_INPUT); },
                   "command 2, 1I0: the assignment has no places for a split "
                   "backward"},
        BadProgram{"DescendingWeights",
                   [](auto& c) {
                     At(c, 6).set_micro_batch(3);
                     At(c, 6).set_slot(At(c, 5).slot());
                     At(c, 7).set_micro_batch(2);
                     At(c, 7).set_slot(At(c, 3).slot());
                     const int slot = At(c, 6).gradient_slot();
                     At(c, 6).set_gradient_slot(slot);
                   },
                   "command 7, 1B2: weight gradients are added in ascending "
                   "order of micro-batches, but 3 came first"},
        BadProgram{"WrongGradientSlot",
                   [](auto& c) { At(c, 2).set_gradient_slot(5); },
                   "command 2, 1B0: gradient slot 5, but message 0 of"},
        BadProgram{"SlotStillTaken",
                   [](auto& c) {
                     // All forwards first: more than the slots hold.
                     c.mutable_commands()->SwapElements(2, 3);
                     c.mutable_commands()->SwapElements(3, 5);
                   },
                   "still holds micro-batch 0"},
        BadProgram{"DoesNotReceive",
                   [](auto& c) { At(c, 0).set_receives(false); },
                   "command 0, 1F0: its input comes over an edge, but "
                   "`receives` is not set"},
        BadProgram{"DoesNotSend", [](auto& c) { At(c, 2).set_sends(false); },
                   "command 2, 1B0: its output goes over an edge, but `sends` "
                   "is not set"},
        BadProgram{"ForwardMissing",
                   [](auto& c) {
                     c.mutable_commands()->DeleteSubrange(5, 1);
                     c.mutable_commands()->RemoveLast();
                   },
                   "step 7: ends without 1F3"},
        BadProgram{"BackwardMissing",
                   [](auto& c) { c.mutable_commands()->RemoveLast(); },
                   "step 7: ends without 1B3"},
        BadProgram{"BackwardInEvaluation",
                   [](auto& c) { c.set_kind(v1::StepCommands::KIND_EVALUATE); },
                   "command 2, 1B0: evaluation has only forwards"}),
    [](const auto& info) { return info.param.name; });

TEST_F(ProgramTest, FirstRankHasNothingToReceiveFrom) {
  ASSERT_OK_AND_ASSIGN(assignment_, DecodeAssignment(Assignments(
                                        lowered_, {.model = TinyModel()})[0]));
  commands_ = TrainCommands(lowered_, 0, 1);
  ASSERT_OK(Lower());
  at(0).set_receives(true);
  EXPECT_THAT(Lower(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0F0: has no edge to receive its input")));
}

TEST_F(ProgramTest, UnevenEvaluationIsRefused) {
  v1::StepCommands commands = EvaluateCommands(lowered_, 1, 7, 3);
  commands.mutable_commands(2)->set_micro_batch(1);
  commands.mutable_commands(2)->set_slot(commands.commands(1).slot());
  EXPECT_THAT(LowerCommands(assignment_, commands),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("command 2, 1F1: is there twice")));
}

}  // namespace
}  // namespace penstock::server::executor
