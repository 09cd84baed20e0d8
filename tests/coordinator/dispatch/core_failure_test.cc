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

// Three stages, running, the barrier waiting for stage-2.
class CoreFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.Start(3);
    cluster_.stage(2).reports_steps = false;
    ASSERT_OK(cluster_.Create(TinyJob(3, 4, 10)).status());
    cluster_.Run();
    ASSERT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  }
  void Exit(const FakeStage& stage, int code) {
    v1::ReportStageExitRequest request;
    request.set_stage_name(stage.name());
    request.set_pid(stage.Registration().pid());
    request.set_exit_code(code);
    Actions actions;
    EXPECT_OK(cluster_.core->ReportStageExit(request, cluster_.now(), actions));
    cluster_.CarryOut(actions);
  }
  void ExpectFreeExcept(const std::string& lost) {
    for (const v1::Stage& stage : cluster_.core->ListStages(cluster_.now())) {
      EXPECT_EQ(stage.state(), stage.name() == lost
                                   ? v1::Stage::STATE_LOST
                                   : v1::Stage::STATE_REGISTERED)
          << stage.name();
    }
  }
  Job Ended(Job::State state, Job::StateReason reason) {
    const Job job = cluster_.Job();
    EXPECT_EQ(job.state(), state) << job.DebugString();
    EXPECT_EQ(job.reason(), reason) << job.DebugString();
    return job;
  }

  FakeCluster cluster_;
};

TEST_F(CoreFailureTest, AReapedStageFailsTheJobAtOnce) {
  cluster_.Disconnect(cluster_.stage(1));
  Exit(cluster_.stage(1), 137);
  cluster_.Run();
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_EQ(job.cause().message(),
            "the job's results: writing /run/metrics.jsonl: Read-only file "
            "system");
}

TEST_F(CoreFailureTest, AStagesFullDiskIsTheJobsReason) {
  cluster_.stage(1).Fail("DISK_FULL", "write /run/model/a: No space left");
  cluster_.Run();
  EXPECT_EQ(Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL)
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  ASSERT_EQ(cluster_.Occurrences("EDGE_BROKEN").size(), 1);
  EXPECT_TRUE(cluster_.Occurrences("EDGE_BROKEN")[0].consequence());
}

TEST_F(CoreFailureTest, ABrokenSessionAndARefusedPortAreALostStage) {
  cluster_.Disconnect(cluster_.stage(0));
  ASSERT_EQ(cluster_.probes.size(), 1);
  EXPECT_EQ(cluster_.probes[0].address, "unix:/run/stage-0");
  Actions actions;
  cluster_.core->MonitorRefused("stage-0", cluster_.probes[0].incarnation,
                                cluster_.now(), actions);
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST)
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
  EXPECT_THAT(
      Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST).cause().message(),
      HasSubstr("was killed by signal 11"));
}

TEST_F(CoreFailureTest, AnEdgeThatBreaksBetweenLiveStagesIsItself) {
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  cluster_.Advance(absl::Milliseconds(199));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Advance(absl::Milliseconds(2));
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_OUT_OF_MEMORY);
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
  Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
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
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(job.cause().message(),
              HasSubstr("stage-1 computes F stage 1 micro-batch 3"));
}

TEST_F(CoreFailureTest, ALossSaysWhatTheStageWasAt) {
  v1::Heartbeat& beat = cluster_.beats["stage-1"];
  beat.set_head_command("F stage 1 micro-batch 3 of step 1");
  cluster_.Advance(absl::Seconds(2));
  cluster_.silent["stage-1"] = true;
  cluster_.Advance(absl::Seconds(11));
  const Job job = Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(
      job.cause().message(),
      HasSubstr("it was at F stage 1 micro-batch 3 of step 1 when it was "
                "last heard"));
}

TEST_F(CoreFailureTest, CancelFreesTheStagesAndEnds) {
  Actions actions;
  ASSERT_OK_AND_ASSIGN(
      const Job cancelling,
      cluster_.core->CancelJob("tiny", cluster_.now(), actions));
  EXPECT_EQ(cancelling.state(), Job::STATE_CANCELLING);
  cluster_.CarryOut(actions);
  cluster_.Run();
  Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
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
  Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
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
  Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
}

// Children of one `penstock run`: a job waits for stage-0 and stage-1.
class CoreFixedStagesTest : public ::testing::Test {
 protected:
  void CreateWithOneStage() {
    cluster_.Start(1);
    ASSERT_OK(cluster_.Create(TinyJob(2, 2)).status());
    cluster_.Run();
    ASSERT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
  }
  absl::Status Exit(const std::string& name, int64_t pid, int code) {
    v1::ReportStageExitRequest request;
    request.set_stage_name(name);
    request.set_pid(pid);
    request.set_exit_code(code);
    Actions actions;
    const absl::Status status =
        cluster_.core->ReportStageExit(request, cluster_.now(), actions);
    cluster_.CarryOut(actions);
    cluster_.Run();
    return status;
  }

  FakeCluster cluster_{
      Options{.queue_deadline = absl::Seconds(60), .fixed_stages = true}};
};

TEST_F(CoreFixedStagesTest, OneThatEndsBeforeItRegistersFailsTheWaitingJob) {
  CreateWithOneStage();
  ASSERT_OK(Exit("stage-1", 77, 137));
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(
      job.cause().message(),
      HasSubstr("(pid 77) was killed by signal 9 before it registered"));
  EXPECT_FALSE(cluster_.File("summary.json").empty());
}

TEST_F(CoreFixedStagesTest, ItsOwnRefusalToStartIsToldApart) {
  CreateWithOneStage();
  ASSERT_OK(Exit("stage-1", 77, 2));
  EXPECT_EQ(cluster_.Job().cause().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST_F(CoreFixedStagesTest, OneThatRegisteredAndEndsFailsTheWaitingJob) {
  CreateWithOneStage();
  const FakeStage& stage = cluster_.stage(0);
  ASSERT_OK(Exit(stage.name(), stage.Registration().pid(), 1));
  EXPECT_EQ(cluster_.Job().reason(), Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(cluster_.Job().cause().stage_name(), "stage-0");
}

TEST_F(CoreFixedStagesTest, AJobThatComesAfterItFailsAtOnce) {
  ASSERT_OK(Exit("stage-1", 77, 127));
  ASSERT_OK(cluster_.Create(TinyJob(2, 2)).status());
  EXPECT_EQ(cluster_.Job().reason(), Job::STATE_REASON_STAGE_LOST);
}

TEST_F(CoreFixedStagesTest, ARefusedRegistrationFailsTheWaitingJob) {
  CreateWithOneStage();
  v1::RegisterStageRequest request = cluster_.stage(0).Registration();
  request.set_stage_name("stage-1");
  request.mutable_protocol()->set_lowest(7);
  request.mutable_protocol()->set_highest(9);
  Actions actions;
  EXPECT_THAT(
      cluster_.core->RegisterStage(request, cluster_.now(), actions).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition));
  cluster_.CarryOut(actions);
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.cause().reason(), "PROTOCOL_VERSION_UNSUPPORTED");
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
}

TEST_F(CoreFixedStagesTest, ATakenNameIsTriedAgainAndFailsNothing) {
  CreateWithOneStage();
  v1::RegisterStageRequest request = cluster_.stage(0).Registration();
  request.set_incarnation("00000000-0000-4000-8000-0000000000ff");
  Actions actions;
  EXPECT_THAT(
      cluster_.core->RegisterStage(request, cluster_.now(), actions).status(),
      StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
}

TEST_F(CoreFixedStagesTest, AJobThatIsCancelledInTheQueueHasASummary) {
  CreateWithOneStage();
  EXPECT_FALSE(cluster_.AnyFile());
  Actions actions;
  ASSERT_OK(cluster_.core->CancelJob("tiny", cluster_.now(), actions).status());
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_CANCELLED);
  EXPECT_EQ(nlohmann::json::parse(cluster_.File("summary.json"))["state"],
            "CANCELLED");
}

TEST_F(CoreFixedStagesTest, StagesThatNeverComeAreMissedAtTheDeadline) {
  CreateWithOneStage();
  cluster_.Advance(absl::Seconds(31));
  ASSERT_EQ(cluster_.Occurrences("WAITING_FOR_STAGES").size(), 1);
  EXPECT_THAT(cluster_.Occurrences("WAITING_FOR_STAGES")[0].message(),
              HasSubstr("2 stages of pool default, device cuda or cpu; "
                        "free: stage-0"));
  cluster_.Disconnect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(5));
  ASSERT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
  cluster_.Connect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(25));
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_NO_STAGES);
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("waited 1m"), HasSubstr("free: stage-0")));
}

TEST(CoreQueueTest, InAStandingClusterAJobMayWait) {
  FakeCluster cluster;
  cluster.Start(1);
  NewJob job = TinyJob(2, 2);
  ASSERT_OK(cluster.Create(job).status());
  v1::ReportStageExitRequest request;
  request.set_stage_name("stage-1");
  Actions actions;
  EXPECT_THAT(cluster.core->ReportStageExit(request, cluster.now(), actions),
              StatusIs(absl::StatusCode::kNotFound));
  cluster.Advance(absl::Minutes(10));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_QUEUED);
  EXPECT_EQ(cluster.Occurrences("WAITING_FOR_STAGES").size(), 20);
}

TEST(CoreAssemblyFailureTest, MissingStagesAreNamedAtTheDeadline) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  cluster.Advance(absl::Seconds(121));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_FAILED);
  EXPECT_THAT(cluster.Job().cause().message(),
              AllOf(HasSubstr("not ready after"),
                    HasSubstr("stage-1 on host host-of-stage-1")));
  EXPECT_FALSE(cluster.File("summary.json").empty());
}

TEST(CoreAssemblyFailureTest, AnAssemblyThatGetsOnMayTakeItsTime) {
  FakeCluster cluster;
  cluster.Start(3);
  for (int i = 1; i < 3; ++i) cluster.stage(i).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(3, 2)).status());
  cluster.Run();
  // One stage is ready, one waits for a peer, and one loads, a tensor every
  // 100 s: 20 minutes in all.
  for (int tensor = 0; tensor < 12; ++tensor) {
    cluster.Advance(absl::Seconds(100));
    ASSERT_EQ(cluster.Job().state(), Job::STATE_ASSEMBLING) << tensor;
    ++cluster.stage(2).progress;
  }
  cluster.stage(2).AnswerAssignment();
  cluster.Run();
  cluster.Advance(absl::Seconds(100));
  cluster.stage(1).AnswerAssignment();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreAssemblyFailureTest, ButNotForEver) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  for (int minute = 0; minute < 31; ++minute) {
    ASSERT_EQ(cluster.Job().state(),
              minute < 30 ? Job::STATE_ASSEMBLING : Job::STATE_FAILED)
        << minute;
    ++cluster.stage(1).progress;
    cluster.Advance(absl::Minutes(1));
  }
  EXPECT_THAT(cluster.Job().cause().message(),
              HasSubstr("not ready after 30m"));
}

// Only the coordinator decides: no stage gives up on a peer that still loads.
TEST(CoreAssemblyFailureTest, StagesConnectAsLongAsTheAssemblyLasts) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.stage(0).answers_assignment = false;
  cluster.Run();
  EXPECT_EQ(cluster.stage(0).assignment().connect_deadline().seconds(),
            absl::ToInt64Seconds(Options().assembly_deadline));
}

TEST(CoreNonfiniteTest, FailsNamingStageTensorAndStep) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).nonfinite = "transformer.h.0.ln_1.weight";
  cluster.stage(0).nonfinite_step = 2;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  const Job job = cluster.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_NONFINITE);
  EXPECT_EQ(job.cause().stage_name(), "stage-0");
  EXPECT_THAT(
      job.cause().message(),
      AllOf(HasSubstr("step 2"), HasSubstr("transformer.h.0.ln_1.weight")));
  EXPECT_EQ(job.step(), 1);
  EXPECT_EQ(cluster.stage(1).releases().size(), 1);
}

TEST(CoreNonfiniteTest, OrIsSkippedOnEveryStage) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).nonfinite = "transformer.wpe.weight";
  cluster.stage(0).nonfinite_step = 2;
  NewJob job = TinyJob(2, 2);
  job.spec.optimizer.on_nonfinite = spec::OnNonfinite::kSkip;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cluster.stage(i).releases().size(), 3);
    EXPECT_EQ(cluster.stage(i).releases()[1].decision(), v1::ReleaseStep::SKIP);
    EXPECT_EQ(cluster.stage(i).releases()[2].adam_t(), 2);
  }
  EXPECT_EQ(cluster.Occurrences("NONFINITE").size(), 1);
  EXPECT_THAT(cluster.File("metrics.jsonl"), HasSubstr("\"skipped\":true"));
}

TEST(CoreNonfiniteTest, AStepWithoutAValidTokenIsReported) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).loss = 0;
  cluster.stage(0).valid_tokens = 0;
  ASSERT_OK(cluster.Create(TinyJob(1, 2, 1)).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  EXPECT_EQ(cluster.Occurrences("NO_VALID_TOKENS").size(), 1);
  EXPECT_THAT(cluster.File("metrics.jsonl"),
              AllOf(HasSubstr("\"loss\":null"),
                    HasSubstr("\"nonfinite\":[\"loss\",\"grad_norm\"]")));
}

TEST(CoreSessionTest, AStaleCoordinatorIsRefusedByItsOwnCore) {
  FakeCluster cluster;
  cluster.Start(1);
  v1::Hello hello = cluster.stage(0).Hello();
  hello.set_term(2);
  Actions actions;
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("term 2")));
  hello.set_term(1);
  hello.set_epoch(5);
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 5")));
  hello.set_stage_name("nobody");
  hello.set_epoch(0);
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreSessionTest, AStageWithAJobOfAFormerCoordinatorDropsIt) {
  FakeCluster cluster(Options{.term = 3});
  FakeStage& stage =
      cluster.AddStage("stage-0", "00000000-0000-4000-8000-000000000000");
  v1::CoordinatorMessage old;
  old.set_term(2);
  old.set_epoch(8);
  old.set_seq(1);
  old.mutable_check_inputs();
  stage.Take(old);
  Actions actions;
  ASSERT_OK(
      cluster.core->RegisterStage(stage.Registration(), cluster.now(), actions)
          .status());
  stage.outbox().clear();
  cluster.Connect(stage);
  EXPECT_GT(stage.epoch(), 8);
  cluster.Run();
  ASSERT_OK(cluster.Create(TinyJob(1, 1)).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
