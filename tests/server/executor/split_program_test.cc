// A stage's part of a split backward: each I has one W, and what lies between
// them has a place.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/program.h"
#include "server/executor/stage_assignment.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/assignments.h"
#include "tests/server/executor/lower_order.h"

namespace penstock::server::executor {
namespace {

using penstock::testing::Assignments;
using penstock::testing::LowerOrder;
using penstock::testing::StatusIs;
using penstock::testing::TinyModel;
using penstock::testing::TrainCommands;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Weight gradients ascend; input gradients need not.
constexpr char kOrder[] = "0F0,0F1,0I1,0I0,0W0,0F2,0I2,0W1,0W2\n";

class SplitProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto lowered = LowerOrder(kOrder, {.micro_batches = 3});
    ASSERT_OK_AND_ASSIGN(assignment_, DecodeAssignment(Assignments(
                                          lowered, {.model = TinyModel()})[0]));
    commands_ = TrainCommands(lowered, 0, 7);
    ASSERT_EQ(assignment_.chunks[0].held_slots, 2);
  }

  StageAssignment assignment_;
  v1::StepCommands commands_;
};

TEST_F(SplitProgramTest, ITakesTheLowestFreePlaceAndItsWGivesItBack) {
  ASSERT_OK_AND_ASSIGN(const Program program,
                       LowerCommands(assignment_, commands_));
  std::vector<std::string> places;
  for (const ProgramCommand& command : program.commands) {
    if (command.op == v1::OP_FORWARD) continue;
    places.push_back(absl::StrCat(
        CommandName(command.op, command.stage, command.micro_batch), "@",
        command.held));
  }
  EXPECT_THAT(places, ElementsAre("0I1@0", "0I0@1", "0W0@1", "0I2@1", "0W1@0",
                                  "0W2@1"));
}

TEST_F(SplitProgramTest, MorePlacesThanTheAssignmentHasAreRefused) {
  assignment_.chunks[0].held_slots = 1;
  EXPECT_THAT(LowerCommands(assignment_, commands_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("command 3, 0I0: all 1 places for split "
                                 "backwards are taken")));
}

struct BadSplit {
  std::string name;
  std::function<void(v1::StepCommands&)> spoil;
  std::string error;
};

class BadSplitTest : public SplitProgramTest,
                     public ::testing::WithParamInterface<BadSplit> {};

TEST_P(BadSplitTest, IsRefusedWithItsPlace) {
  GetParam().spoil(commands_);
  EXPECT_THAT(LowerCommands(assignment_, commands_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
}

v1::Command& At(v1::StepCommands& commands, int index) {
  return *commands.mutable_commands(index);
}

INSTANTIATE_TEST_SUITE_P(
    AllRules, BadSplitTest,
    ::testing::Values(
        BadSplit{"IWithoutW",
                 [](auto& c) { c.mutable_commands()->RemoveLast(); },
                 "step 7: ends without 0W2"},
        BadSplit{"WTwice", [](auto& c) { *c.add_commands() = At(c, 8); },
                 "command 9, 0W2: its weight gradient is there twice"},
        BadSplit{"WBeforeI", [](auto& c) { At(c, 3).Swap(&At(c, 4)); },
                 "command 3, 0W0: comes before its input gradient"},
        BadSplit{"WAfterB",
                 [](auto& c) {
                   At(c, 6).Swap(&At(c, 7));
                   At(c, 7).set_op(v1::OP_BACKWARD);
                 },
                 "command 8, 0W2: its weight gradient is there twice"},
        BadSplit{"BAfterI", [](auto& c) { At(c, 4).set_op(v1::OP_BACKWARD); },
                 "command 4, 0B0: its backward is there twice"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::executor
