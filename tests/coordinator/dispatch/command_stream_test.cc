#include "coordinator/dispatch/command_stream.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/ids/op_letter.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

// A schedule's text, the messages of stages and the trace name operations
// alike.
TEST(CommandStreamTest, OperationsAreNamedAsInSchedules) {
  using schedule::Op;
  for (const Op op :
       {Op::kForward, Op::kBackward, Op::kBackwardInput, Op::kBackwardWeight}) {
    EXPECT_EQ(common::ids::OpLetter(OpToProto(op)),
              std::string(1, static_cast<char>(op)));
  }
  EXPECT_EQ(common::ids::OpLetter(v1::OP_UNSPECIFIED), "?");
  EXPECT_EQ(common::ids::OpLetter(v1::Op_MAX + 1), "?");
}

TEST(CommandStreamTest, EvaluationTakesGroupsThroughTheStagesOfARank) {
  ASSERT_OK_AND_ASSIGN(
      const schedule::Schedule order,
      schedule::Generate("zb-v",
                         {.ranks = 2, .chunks = 2, .micro_batches = 4}));
  ASSERT_OK_AND_ASSIGN(const schedule::LoweredProgram program,
                       schedule::LowerVerified(order, {}));
  const v1::StepCommands commands = EvaluateCommands(program, 1, 7, 3, 2);
  EXPECT_EQ(commands.step(), 7);
  std::string all;
  for (const v1::Command& command : commands.commands()) {
    absl::StrAppend(&all, command.receives() ? ">" : "", command.stage(), "F",
                    command.micro_batch(), command.sends() ? "> " : " ");
    EXPECT_EQ(command.slot(),
              command.micro_batch() % program.stages[command.stage()].slots);
  }
  EXPECT_EQ(all, ">1F0 >1F1 2F0> 2F1> >1F2 2F2> ");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
