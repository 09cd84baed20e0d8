// What the runner reports of a job that goes on, and of one that fails.
#include "server/service/stage_job_runner.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/time/proto_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/executor/assignments.h"
#include "tests/server/service/stage_job_runner_case.h"

namespace penstock::server::service {
namespace {

using ::penstock::testing::LowerNamed;
using ::testing::AllOf;
using ::testing::HasSubstr;

using StageJobRunnerTest = StageJobRunnerCase;

TEST_F(StageJobRunnerTest, RunsAJobFromItsInputsToItsRelease) {
  const int64_t before = runner_->heartbeat().progress();
  const std::string fingerprint = Fingerprint(1);
  EXPECT_EQ(fingerprint.size(), 64);
  const int64_t checked = runner_->heartbeat().progress();
  EXPECT_GT(checked, before);  // The data were read.

  runner_->Assemble(1, AssignmentOf(1));
  const Reported ready = Next();
  EXPECT_EQ(ready.epoch, 1);
  ASSERT_TRUE(ready.message.has_ready()) << ready.message.DebugString();
  EXPECT_GT(ready.message.ready().parameters_size(), 10);
  EXPECT_EQ(runner_->heartbeat().unconnected_size(), 0);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_READY);
  // A tensor each.
  EXPECT_GE(runner_->heartbeat().progress(),
            checked + ready.message.ready().parameters_size());

  runner_->Run(1, {.epoch = 1,
                   .work = penstock::testing::TrainCommands(
                       LowerNamed({.ranks = 1, .micro_batches = 2}), 0, 1)});
  const Reported report = Next();
  ASSERT_TRUE(report.message.has_step_report());
  EXPECT_EQ(report.message.step_report().losses_size(), 2);
  v1::ReleaseStep release;
  release.set_step(1);
  release.set_decision(v1::ReleaseStep::DECISION_SKIP);
  runner_->Run(1, {.epoch = 1, .work = release});
  EXPECT_EQ(Next().message.apply_ack().step(), 1);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_RUNNING);
  EXPECT_EQ(Status().job_id(), "job-00000");

  Abort(2, absl::OkStatus());
  const Reported aborted = Next();
  EXPECT_EQ(aborted.message.aborted().epoch(), 2);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_REGISTERED);
  EXPECT_EQ(Status().rank(), -1);
  // A release is no error.
  EXPECT_EQ(Status().last_error().code(), 0) << Status().DebugString();
}

TEST_F(StageJobRunnerTest, AHeartbeatSaysWhichCommandWaitsForWhatAndHowLong) {
  const auto neighbour = MakeNeighbour("stage-1");
  runner_->Assemble(1, AssignmentOf(2, 0));
  neighbour->runner->Assemble(1, AssignmentOf(2, 1));
  ASSERT_TRUE(Next().message.has_ready());
  ASSERT_TRUE(neighbour->reports.Take()->message.has_ready());
  v1::Heartbeat beat = runner_->heartbeat();
  EXPECT_EQ(beat.head_command(), "");
  EXPECT_FALSE(beat.has_head_since());
  EXPECT_FALSE(beat.has_awaited());

  // Stage 0 gets no command: it sends nothing.
  const auto program = LowerNamed({.ranks = 2, .micro_batches = 2});
  neighbour->runner->Run(
      1, {.epoch = 1, .work = penstock::testing::TrainCommands(program, 1, 1)});
  const auto wait_until = [&](const auto& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    do {
      beat = neighbour->runner->heartbeat();
    } while (!condition() && absl::Now() < end);
  };
  wait_until([&] { return beat.has_awaited(); });
  EXPECT_EQ(beat.head_command(), "F stage 1 micro-batch 0 of step 1");
  EXPECT_EQ(beat.awaited().kind(), v1::EDGE_KIND_ACTIVATION);
  EXPECT_EQ(beat.awaited().source_stage(), 0);
  EXPECT_EQ(beat.awaited().target_stage(), 1);
  const v1::Heartbeat first = beat;
  ASSERT_TRUE(first.has_head_since());
  // It grows while the command stays.
  wait_until([&] {
    return common::time::FromProto(beat.head_since()) >
           common::time::FromProto(first.head_since());
  });
  EXPECT_GT(common::time::FromProto(beat.head_since()),
            common::time::FromProto(first.head_since()));
  EXPECT_EQ(beat.head_command(), first.head_command());
}

TEST_F(StageJobRunnerTest, CommandsBeforeTheAssignmentAreAFailure) {
  runner_->Run(1, {.epoch = 1, .work = v1::ReleaseStep()});
  const Reported failed = Next();
  EXPECT_EQ(failed.message.failure().epoch(), 1);
  EXPECT_THAT(failed.message.failure().cause().message(),
              HasSubstr("before the assignment"));
}

TEST_F(StageJobRunnerTest, AnAssemblyThatFailsIsReportedAndRemembered) {
  device_error_ = absl::ResourceExhaustedError("no memory for 3 GiB");
  runner_->Assemble(1, AssignmentOf(1));
  const Reported failed = Next();
  ASSERT_TRUE(failed.message.has_failure());
  const v1::Cause& cause = failed.message.failure().cause();
  EXPECT_EQ(cause.stage_name(), "stage-0");
  EXPECT_EQ(cause.reason(), "OUT_OF_MEMORY");
  EXPECT_THAT(cause.message(), AllOf(HasSubstr("stage-0: no memory for 3 GiB"),
                                     HasSubstr("use more stages")));
  EXPECT_EQ(Status().last_error().message(), cause.message());
  // A user's wish, and the end of the job, do not hide it.
  Abort(2, absl::CancelledError("cancelled"));
  Next();
  EXPECT_EQ(Status().last_error().message(), cause.message());
}

TEST_F(StageJobRunnerTest, ThreadsThatThereAreNotAreNoWantOfMemoryOfTheModel) {
  device_error_ = common::status::WithReason(
      absl::ResourceExhaustedError("of 9 compute threads there are 4"),
      common::status::kReasonOutOfMemory);
  runner_->Assemble(1, AssignmentOf(1));
  const Reported failed = Next();
  const v1::Cause& cause = failed.message.failure().cause();
  EXPECT_EQ(cause.reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(cause.message(), "stage-0: of 9 compute threads there are 4");
}

// The late command would be refused with less than the failure before it says,
// and be taken for a cause of its own.
TEST_F(StageJobRunnerTest, CommandsThatComeAfterAFailureAreNoSecondOne) {
  runner_->Assemble(1, AssignmentOf(1));
  ASSERT_TRUE(Next().message.has_ready());
  Write("");
  const auto commands = [](int64_t step) {
    return RunAction{
        .epoch = 1,
        .work = penstock::testing::TrainCommands(
            LowerNamed({.ranks = 1, .micro_batches = 2}), 0, step)};
  };
  runner_->Run(1, commands(1));
  const Reported failed = Next();
  EXPECT_EQ(failed.message.failure().cause().reason(), "INPUT_NOT_VISIBLE");
  EXPECT_THAT(failed.message.failure().cause().message(),
              HasSubstr("data files must stay"));
  runner_->Run(1, commands(2));
  runner_->Run(1, {.epoch = 1, .work = v1::ReleaseStep()});
  Abort(2, absl::UnavailableError("the job failed"));
  const Reported next = Next();
  EXPECT_TRUE(next.message.has_aborted()) << next.message.DebugString();
}

}  // namespace
}  // namespace penstock::server::service
