// Jobs that break: lost stages, broken edges and sessions, cancels.
#include <cerrno>
#include <string>

#include "common/status/file_error.h"
#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using v1::Job;

class CoreFailureTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.RunThreeStages(); }
  void Exit(const FakeStage& stage, int code) {
    EXPECT_OK(
        cluster_.ReportExit(stage.name(), stage.Registration().pid(), code));
  }
  void ExpectFreeExcept(const std::string& lost) {
    for (const v1::Stage& stage : cluster_.core->ListStages(cluster_.now())) {
      EXPECT_EQ(stage.state(), stage.name() == lost
                                   ? v1::Stage::STATE_LOST
                                   : v1::Stage::STATE_REGISTERED)
          << stage.name();
    }
  }

  FakeCluster cluster_;
};

TEST_F(CoreFailureTest, AReapedStageFailsTheJobAtOnce) {
  cluster_.Disconnect(cluster_.stage(1));
  Exit(cluster_.stage(1), 137);
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(job.cause().message(), HasSubstr("killed by signal 9"));
  ExpectFreeExcept("stage-1");
  const auto summary = nlohmann::json::parse(cluster_.File("summary.json"));
  EXPECT_EQ(summary["reason"], "STAGE_LOST");
  EXPECT_EQ(summary["cause"]["stage"], "stage-1");
}

TEST_F(CoreFailureTest, AFullDiskFailsTheJobWithItsReason) {
  Actions actions;
  cluster_.core->WriteFailed(
      cluster_.Job().id(),
      common::status::FileError(ENOSPC, "writing /run/metrics.jsonl"),
      cluster_.now(), actions);
  cluster_.CarryOut(actions);
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL);
  EXPECT_THAT(job.cause().message(), HasSubstr("/run/metrics.jsonl"));
  ExpectFreeExcept("");
  // The same again, of a job that is over: nothing.
  cluster_.core->WriteFailed(job.id(), absl::PermissionDeniedError("again"),
                             cluster_.now(), actions);
  EXPECT_EQ(cluster_.Job().reason(), Job::STATE_REASON_DISK_FULL);
}

TEST_F(CoreFailureTest, AResultThatCannotBeWrittenIsNoFaultOfPenstocks) {
  Actions actions;
  cluster_.core->WriteFailed(
      cluster_.Job().id(),
      common::status::FileError(EROFS, "writing /run/metrics.jsonl"),
      cluster_.now(), actions);
  cluster_.CarryOut(actions);
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_EQ(job.cause().message(),
            "the job's results: writing /run/metrics.jsonl: Read-only file "
            "system");
}

TEST_F(CoreFailureTest, AStagesFullDiskIsTheJobsReason) {
  cluster_.stage(1).Fail("DISK_FULL", "write /run/model/a: No space left");
  cluster_.Run();
  EXPECT_EQ(cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL)
                .cause()
                .stage_name(),
            "stage-1");
}

TEST_F(CoreFailureTest, BrokenSessionAndBrokenEdgesAreOneLostStage) {
  // The neighbours notice first, in either order.
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.clock.Advance(absl::Milliseconds(50));
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.stage(2).BreakEdge(1, 2);
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  ExpectFreeExcept("stage-1");
  // The neighbours' words are consequences.
  const auto consequences = cluster_.Occurrences("EDGE_BROKEN");
  ASSERT_GE(consequences.size(), 1);
  for (const v1::Occurrence& o : consequences) EXPECT_TRUE(o.consequence());
  const auto causes = cluster_.Occurrences("STAGE_LOST");
  ASSERT_EQ(causes.size(), 1);
  EXPECT_FALSE(causes[0].consequence());
}

// The step goes on between the edge's end and the session's: releases and
// commands reach a stage that has stopped, and must not bring about a verdict.
TEST_F(CoreFailureTest, CommandsThatCameTooLateDoNotHideTheLostStage) {
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  cluster_.stage(2).reports_steps = true;
  cluster_.stage(2).Wake();
  cluster_.Run();
  ASSERT_GE(cluster_.stage(0).releases().size(), 1);  // Too late for it.
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.clock.Advance(absl::Milliseconds(199));
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  ASSERT_EQ(cluster_.Occurrences("EDGE_BROKEN").size(), 1);
  EXPECT_TRUE(cluster_.Occurrences("EDGE_BROKEN")[0].consequence());
}

TEST_F(CoreFailureTest, ABrokenSessionAndARefusedPortAreALostStage) {
  cluster_.Disconnect(cluster_.stage(0));
  ASSERT_EQ(cluster_.probes.size(), 1);
  EXPECT_EQ(cluster_.probes[0].address, "10.0.0.1:70");
  Actions actions;
  cluster_.core->MonitorRefused("stage-0", cluster_.probes[0].incarnation,
                                cluster_.now(), actions);
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST)
                .cause()
                .stage_name(),
            "stage-0");
}

TEST_F(CoreFailureTest, TheExitCodeOfAStageThatWasLostByEvidenceIsAdded) {
  cluster_.stage(0).answers_check = true;
  cluster_.Disconnect(cluster_.stage(2));
  cluster_.Disconnect(cluster_.stage(1));  // Keeps its abort unanswered.
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);  // Stopping.
  Exit(cluster_.stage(1), 139);
  cluster_.Advance(absl::Seconds(3));
  EXPECT_THAT(cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST)
                  .cause()
                  .message(),
              HasSubstr("was killed by signal 11"));
}

TEST_F(CoreFailureTest, AnEdgeThatBreaksBetweenLiveStagesIsItself) {
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  cluster_.Advance(absl::Milliseconds(199));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Advance(absl::Milliseconds(2));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
  EXPECT_EQ(job.cause().stage_name(), "stage-0");
  EXPECT_THAT(job.cause().message(), HasSubstr("edge 0->1 reset"));
  ExpectFreeExcept("");
}

TEST_F(CoreFailureTest, AStagesOwnFailureIsBetterThanItsNeighboursEdge) {
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  cluster_.clock.Advance(absl::Milliseconds(100));
  cluster_.stage(1).Fail("OUT_OF_MEMORY", "stage-1: no memory for 3 GiB");
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_OUT_OF_MEMORY);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  ASSERT_EQ(cluster_.Occurrences("EDGE_BROKEN").size(), 1);
  EXPECT_TRUE(cluster_.Occurrences("EDGE_BROKEN")[0].consequence());
}

TEST_F(CoreFailureTest, OneFailureAbortsAllPeersAtOnce) {
  const int64_t before = cluster_.stage(0).epoch();
  cluster_.stage(1).Fail("", "stage-1: bad luck");
  cluster_.Run();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(cluster_.stage(i).assigned()) << i;
    EXPECT_EQ(cluster_.stage(i).abort().cause().message(), "stage-1: bad luck");
    EXPECT_GT(cluster_.stage(i).epoch(), before);
  }
}

TEST_F(CoreFailureTest, OfAFailuresWordsOnlySomeAreKept) {
  cluster_.stage(1).Fail("", std::string(1 << 20, 'x'));
  cluster_.Run();
  EXPECT_LT(cluster_.Job().cause().message().size(), 17000);
  EXPECT_THAT(cluster_.Job().cause().message(), HasSubstr("more bytes)"));
  EXPECT_LT(cluster_.stage(0).abort().cause().message().size(), 17000);
}

TEST_F(CoreFailureTest, ABrokenSessionAloneLosesNothing) {
  cluster_.Disconnect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(3));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Connect(cluster_.stage(0));
  cluster_.Run();
  cluster_.stage(2).reports_steps = true;
  cluster_.stage(2).Wake();
  cluster_.Disconnect(cluster_.stage(2));  // Its report is lost on the way.
  cluster_.Connect(cluster_.stage(2));     // Hello has it.
  cluster_.Run();
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
}

TEST_F(CoreFailureTest, AStageThatWasGivenUpComesBackWithoutItsJob) {
  cluster_.silent["stage-1"] = true;
  cluster_.Advance(absl::Seconds(11));
  ASSERT_EQ(cluster_.Job().state(), Job::STATE_FAILED);
  FakeStage& stage = cluster_.stage(1);
  ASSERT_TRUE(stage.assigned());
  Actions actions;
  ASSERT_OK(cluster_.core
                ->RegisterStage(stage.Registration(), cluster_.now(), actions)
                .status());
  cluster_.Connect(stage);
  cluster_.Run();
  EXPECT_FALSE(stage.assigned());
  ExpectFreeExcept("");
}

TEST_F(CoreFailureTest, ASilentStageIsLostWithItsLease) {
  cluster_.silent["stage-1"] = true;
  cluster_.Advance(absl::Seconds(9));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Advance(absl::Seconds(2));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("stage-1"), HasSubstr("silent"),
                    HasSubstr("is the process stopped")));
  ASSERT_EQ(cluster_.closed.size(), 1);
  ExpectFreeExcept("stage-1");
}

TEST_F(CoreFailureTest, ANewIncarnationReplacesADeadOneAndFailsTheJob) {
  cluster_.Disconnect(cluster_.stage(1));
  FakeStage& again =
      cluster_.AddStage("stage-1", "00000000-0000-4000-8000-0000000000ff");
  Actions actions;
  ASSERT_OK(cluster_.core
                ->RegisterStage(again.Registration(), cluster_.now(), actions)
                .status());
  cluster_.CarryOut(actions);
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(job.cause().message(), HasSubstr("took its name"));
  cluster_.Connect(again);
  EXPECT_OK(cluster_.core->GetStage("stage-1", cluster_.now()).status());
}

TEST_F(CoreFailureTest, WhenNothingMovesItSaysSoAndThenGivesUp) {
  // Progress stands still while commands are queued on all of them.
  cluster_.Advance(absl::Seconds(12));
  const auto notices = cluster_.Occurrences("STALLED");
  ASSERT_EQ(notices.size(), 1);
  EXPECT_THAT(notices[0].message(), HasSubstr("the report of stage-2"));
  cluster_.Advance(absl::Seconds(170));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
  EXPECT_THAT(job.cause().message(),
              HasSubstr("step 1: the report of stage-2"));
}

TEST_F(CoreFailureTest, AStallNamesTheOneThatWaitsForNobody) {
  v1::Heartbeat& waits = cluster_.beats["stage-0"];
  waits.set_head_command("B stage 0 micro-batch 1 of step 1");
  waits.mutable_head_since()->set_seconds(8);
  waits.mutable_awaited()->set_source_stage(1);
  waits.mutable_awaited()->set_target_stage(0);
  waits.mutable_awaited()->set_kind(v1::EDGE_KIND_GRADIENT);
  v1::Heartbeat& computes = cluster_.beats["stage-1"];
  computes.set_head_command("F stage 1 micro-batch 3 of step 1");
  computes.mutable_head_since()->set_seconds(9);
  cluster_.Advance(absl::Seconds(12));
  const auto notices = cluster_.Occurrences("STALLED");
  ASSERT_EQ(notices.size(), 1);
  EXPECT_EQ(notices[0].stage_name(), "stage-1");
  EXPECT_THAT(
      notices[0].message(),
      HasSubstr(": stage-1 computes F stage 1 micro-batch 3 of step 1 for 9"));
  EXPECT_THAT(
      notices[0].message(),
      HasSubstr("; stage-0 waits for gradient 1->0 from stage-1 for 8"));
  cluster_.Advance(absl::Seconds(170));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(job.cause().message(),
              HasSubstr("stage-1 computes F stage 1 micro-batch 3"));
}

TEST_F(CoreFailureTest, CancelFreesTheStagesAndEnds) {
  Actions actions;
  ASSERT_OK_AND_ASSIGN(
      const Job cancelling,
      cluster_.core->CancelJob("tiny", cluster_.now(), actions));
  EXPECT_EQ(cancelling.state(), Job::STATE_CANCELLING);
  cluster_.CarryOut(actions);
  cluster_.Run();
  cluster_.Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
  ExpectFreeExcept("");
  EXPECT_THAT(
      cluster_.core->CancelJob("tiny", cluster_.now(), actions).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CoreFailureTest, CancelDoesNotWaitForEverForAStage) {
  cluster_.Disconnect(cluster_.stage(1));
  Actions actions;
  ASSERT_OK(cluster_.core->CancelJob("tiny", cluster_.now(), actions).status());
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_CANCELLING);
  cluster_.Advance(absl::Seconds(10.1));
  cluster_.Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
}

// What a coordinator does when it is told to end.
TEST_F(CoreFailureTest, ClosingCancelsEveryJobInTimeAndTakesNoMore) {
  cluster_.Disconnect(cluster_.stage(1));
  const std::string id = cluster_.Job().id();
  Actions actions;
  EXPECT_THAT(cluster_.core->Close("told to end", absl::Seconds(1),
                                   cluster_.now(), actions),
              ::testing::ElementsAre(id));
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_CANCELLING);
  EXPECT_THAT(cluster_.Create(TinyJob(2, 2)),
              StatusIs(absl::StatusCode::kUnavailable));
  cluster_.Advance(absl::Seconds(1.1));
  const Job job = cluster_.Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
  EXPECT_EQ(job.cause().message(), "told to end");
  const auto summary = nlohmann::json::parse(cluster_.File("summary.json"));
  EXPECT_EQ(summary["state"], "CANCELLED");
  EXPECT_EQ(summary["cause"]["message"], "told to end");
}

TEST_F(CoreFailureTest, ClosingDoesNotWaitLongerForAJobThatFails) {
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.stage(2).Fail("DISK_FULL", "write /run/model/a: No space left");
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  Actions actions;
  cluster_.core->Close("told to end", absl::Seconds(1), cluster_.now(),
                       actions);
  cluster_.CarryOut(actions);
  cluster_.Advance(absl::Seconds(1.1));
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL);
}

TEST_F(CoreFailureTest, AMessageThatCannotBeIsTheEndOfTheJob) {
  v1::StageMessage message;
  message.mutable_apply_ack()->set_step(7);
  Actions actions;
  EXPECT_THAT(
      cluster_.core->Receive(2, message, cluster_.now(), actions),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not released")));
  cluster_.CarryOut(actions);
  cluster_.Run();
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
