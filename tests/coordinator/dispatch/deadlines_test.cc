#include "coordinator/dispatch/deadlines.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Two stages, `micro_batches` times 10^9 operations each.
planner::Plan PlanOf(int micro_batches) {
  planner::Plan plan;
  plan.program.micro_batches = micro_batches;
  plan.costs.stages.assign(
      2, {.forward = 3e8, .backward_input = 3e8, .backward_weight = 4e8});
  return plan;
}

TEST(DeadlinesTest, TheDefaultsKeepTheRules) {
  EXPECT_OK(CheckDeadlines(Options()));
}

TEST(DeadlinesTest, EachRuleBetweenThemIsChecked) {
  Options options;
  options.registry.lease = absl::Seconds(4);
  EXPECT_THAT(CheckDeadlines(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--lease 4s"),
                             HasSubstr("five heartbeats of 1s"))));
  options = Options();
  options.command_deadline = options.stall_deadline;
  EXPECT_THAT(CheckDeadlines(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("command_deadline 3m is not below "
                                 "stall_deadline 3m")));
  options = Options();
  options.assembly_stall_deadline =
      options.assembly_deadline + absl::Seconds(1);
  EXPECT_THAT(CheckDeadlines(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("assembly_stall_deadline 30m1s is longer than "
                                 "assembly_deadline 30m")));
  for (const auto& [name, deadline] :
       {std::pair{"cause_window", &Options::cause_window},
        {"abort_deadline", &Options::abort_deadline},
        {"cancel_deadline", &Options::cancel_deadline}}) {
    options = Options();
    options.*deadline = absl::ZeroDuration();
    EXPECT_THAT(
        CheckDeadlines(options),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat(name, " is 0, it must be above 0"))));
  }
  options = Options();
  options.end_deadline = absl::ZeroDuration();
  EXPECT_THAT(CheckDeadlines(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("end_deadline is 0")));
}

TEST(DeadlinesTest, ASmallModelHasTheConstants) {
  const Options options;
  EXPECT_EQ(CommandDeadline(options, PlanOf(4), "cpu", 0),
            options.command_deadline);
  EXPECT_EQ(StallDeadline(options, options.command_deadline, absl::Seconds(1)),
            options.stall_deadline);
}

TEST(DeadlinesTest, ALargeModelHasAsLongAsItsWholeStep) {
  // 2 stages, 1000 micro-batches of 1e9 at 1e9 a second.
  const Options options;
  const absl::Duration command =
      CommandDeadline(options, PlanOf(1000), "cpu", 0);
  EXPECT_EQ(command, absl::Seconds(2000));
  EXPECT_GT(CommandDeadline(options, PlanOf(1000), "cpu", 100), command);
  // Slower devices have longer.
  EXPECT_GT(CommandDeadline(options, PlanOf(1000), "reference", 0), command);
  EXPECT_EQ(StallDeadline(options, command, absl::ZeroDuration()),
            absl::Seconds(3000));
}

// Its error shows it as it was sent.
TEST(DeadlinesTest, ADeadlineThatIsComputedIsWholeSeconds) {
  // An evaluation of one micro-batch: 0.6 s more.
  EXPECT_EQ(CommandDeadline(Options(), PlanOf(1000), "cpu", 1),
            absl::Seconds(2001));
}

// Costs of `virtual` are seconds, with their transfers; it has twice as long.
TEST(DeadlinesTest, AVirtualDeviceHasTheTimesThatItIsTold) {
  planner::Plan plan = PlanOf(2);
  plan.costs.stages.assign(
      2, {.forward = 60, .backward_input = 20, .backward_weight = 20});
  EXPECT_EQ(CommandDeadline(Options(), plan, "virtual", 0),
            absl::Seconds(2 * 400));
  EXPECT_EQ(CommandDeadline(Options(), plan, "virtual", 1),
            absl::Seconds(2 * 520));
  plan.costs.latency = 1;
  plan.costs.seconds_per_byte = 0.5;
  plan.costs.bytes = {.activation = 4, .gradient = 2, .tied = 8};
  EXPECT_EQ(CommandDeadline(Options(), plan, "virtual", 0),
            absl::Seconds(2 * (400 + 4 * (3 + 2) + 2 * 5)));
  // Of full backwards that were measured apart.
  plan.costs = {.stages =
                    std::vector<schedule::StageTimes>(2, {.forward = 60,
                                                          .backward_input = 20,
                                                          .backward_weight = 20,
                                                          .backward = 90})};
  EXPECT_EQ(CommandDeadline(Options(), plan, "virtual", 0),
            absl::Seconds(2 * 600));
}

TEST(DeadlinesTest, WhatWasMeasuredCountsToo) {
  const Options options;
  EXPECT_EQ(
      StallDeadline(options, options.command_deadline, absl::Seconds(100)),
      absl::Seconds(400));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
