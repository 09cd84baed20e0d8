#include "coordinator/dispatch/command_stream.h"

#include <string>

#include "common/ids/op_letter.h"
#include "gtest/gtest.h"

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

}  // namespace
}  // namespace penstock::coordinator::dispatch
