// profile.json: what is written is what is read; anything else is refused.
#include "coordinator/dispatch/time_profile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// As Accounting::MeasuredCosts() gives them.
constexpr schedule::StageTimes kWhole = {.forward = 0.002,
                                         .backward_input = 0,
                                         .backward_weight = 0,
                                         .backward = 0.00425};
constexpr schedule::StageTimes kSplit = {
    .forward = 0.25, .backward_input = 0.5, .backward_weight = 0.125};

TEST(TimeProfileTest, IsWrittenForPeopleToo) {
  EXPECT_EQ(TimeProfile({.stages = {kWhole}}), R"({
  "stages": [
    {
      "forward": 0.002,
      "backward_input": null,
      "backward_weight": null,
      "backward": 0.00425
    }
  ],
  "transfer": null
}
)");
}

TEST(TimeProfileTest, WhatIsWrittenIsRead) {
  ASSERT_OK_AND_ASSIGN(
      const auto stages,
      ParseTimeProfile(TimeProfile({.stages = {kWhole, kSplit}})));
  ASSERT_EQ(stages.size(), 2);
  EXPECT_FALSE(stages[0].split);
  EXPECT_EQ(stages[0].times.forward, 0.002);
  EXPECT_EQ(stages[0].times.of(schedule::Op::kBackward), 0.00425);
  EXPECT_EQ(stages[0].times.of(schedule::Op::kBackwardInput), 0.002125);
  EXPECT_TRUE(stages[1].split);
  EXPECT_EQ(stages[1].times.of(schedule::Op::kBackwardInput), 0.5);
  EXPECT_EQ(stages[1].times.of(schedule::Op::kBackwardWeight), 0.125);
  EXPECT_EQ(stages[1].times.of(schedule::Op::kBackward), 0.625);
}

TEST(TimeProfileTest, WhatIsNotMeasuredMayBeLeftOut) {
  ASSERT_OK_AND_ASSIGN(
      const auto stages,
      ParseTimeProfile(R"({"stages": [{"forward": 0, "backward": 1}]})"));
  EXPECT_EQ(stages[0].times.forward, 0);
  EXPECT_EQ(stages[0].times.of(schedule::Op::kBackward), 1);
}

TEST(TimeProfileTest, AnythingElseIsRefusedWhereItStands) {
  for (const auto& [text, error] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"", "profile: it is no JSON"},
           {R"({"stages": []} x)", "profile: it is no JSON"},
           {"[]", "profile: expected an object"},
           {R"({"stage": []})", "profile: unknown field \"stage\""},
           {"{}", "stages: expected a list"},
           {R"({"stages": []})", "stages: expected a list"},
           {R"({"stages": [1]})", "stages[0]: expected an object"},
           {R"({"stages": [{"forward": 1, "backward": 1}, {"backward": 1}]})",
            "stages[1]: has no time of forward"},
           {R"({"stages": [{"forward": 1, "backward_input": 1}]})",
            "stages[0]: has no time of backward, nor both"},
           {R"({"stages": [{"forward": -1, "backward": 1}]})",
            "stages[0].forward: expected seconds from 0"},
           {R"({"stages": [{"forward": 1e300, "backward": 1}]})",
            "stages[0].forward: expected seconds from 0 to 86400"},
           {R"({"stages": [{"forward": "5ms", "backward": 1}]})",
            "stages[0].forward: expected seconds"},
           {R"({"stages": [{"forward": 1, "backward": 1, "f": 1}]})",
            "stages[0]: unknown field \"f\""},
           {R"({"stages": [{"forward": 1, "backward": 1}], "transfer": 1})",
            "transfer: expected null; give virtual.transfer"}}) {
    EXPECT_THAT(ParseTimeProfile(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)))
        << text;
  }
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
