// Stages that are lost: what is said of it, and many at once.
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using v1::Job;

TEST(CoreLossTest, ALossSaysWhatTheStageWasAt) {
  FakeCluster cluster;
  cluster.RunThreeStages();
  v1::Heartbeat& beat = cluster.beats["stage-1"];
  beat.set_head_command("F stage 1 micro-batch 3 of step 1");
  cluster.Advance(absl::Seconds(2));
  cluster.silent["stage-1"] = true;
  cluster.Advance(absl::Seconds(11));
  const Job job =
      cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(
      job.cause().message(),
      HasSubstr("at its last heartbeat, 10s before, it was at F stage 1 "
                "micro-batch 3 of step 1"));
}

// Of the lost ones only the newest are kept for people to see.
TEST(CoreLossTest, MoreStagesMayBeLostAtOnceThanAreKept) {
  FakeCluster cluster(Options{.registry = {.lost_kept = 1}});
  cluster.RunThreeStages();
  cluster.beats["stage-0"].set_head_command("B stage 0 micro-batch 1");
  cluster.Advance(absl::Seconds(2));
  for (const char* name : {"stage-0", "stage-1", "stage-2"}) {
    cluster.silent[name] = true;
  }
  cluster.Advance(absl::Seconds(11));
  const Job job =
      cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(job.cause().message(), HasSubstr("silent"));
  EXPECT_THAT(job.cause().message(), HasSubstr("at B stage 0 micro-batch 1"));
  EXPECT_THAT(cluster.closed, SizeIs(3));
  EXPECT_THAT(cluster.core->ListStages(cluster.now()), SizeIs(1));
}

// However few are kept: how its process ended may be told later.
TEST(CoreLossTest, ALostStageIsKnownUntilItsJobHasEnded) {
  FakeCluster cluster(Options{.registry = {.lost_kept = 0}});
  cluster.RunThreeStages();
  cluster.silent["stage-0"] = true;
  cluster.Advance(absl::Seconds(9.5));
  cluster.Disconnect(cluster.stage(1));  // Keeps its abort unanswered.
  cluster.Advance(absl::Seconds(1));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_RUNNING);  // Stopping.
  EXPECT_OK(cluster.ReportExit("stage-0", cluster.stage(0).Registration().pid(),
                               137));
  cluster.Advance(absl::Seconds(3));
  EXPECT_THAT(cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST)
                  .cause()
                  .message(),
              HasSubstr("was killed by signal 9"));
  EXPECT_THAT(cluster.core->GetStage("stage-0", cluster.now()).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

// Of a stage that only lost its session on another machine: nobody listens on
// this one's socket of that path, and that says nothing.
TEST(CoreLossTest, WhatEachMachineHasIsAskedOnlyOnTheStagesOwn) {
  for (const std::string address :
       {"unix:/run/penstock/stage-0.sock", "127.0.0.1:7401", "[::1]:7401",
        "localhost:7401", "0.0.0.0:7401", "[::]:7401", "10.0.0.7:7401"}) {
    for (const std::string host : {"here", "there"}) {
      FakeCluster cluster(Options{.host = "here"});
      FakeStage& stage =
          cluster.AddStage("stage-0", "00000000-0000-4000-8000-000000000000");
      stage.host = host;
      stage.monitor_address = address;
      Actions actions;
      ASSERT_OK(
          cluster.core
              ->RegisterStage(stage.Registration(), cluster.now(), actions)
              .status());
      cluster.Connect(stage);
      cluster.Disconnect(stage);
      const bool asked = host == "here" || address == "10.0.0.7:7401";
      EXPECT_THAT(cluster.probes, SizeIs(asked ? 1 : 0)) << address << host;
    }
  }
}

// What it was told last, an Abort here, is dropped with it.
TEST(CoreLossTest, AStageThatIsLostIsNotWaitedForToDropItsJob) {
  FakeCluster cluster;
  cluster.RunThreeStages();
  for (const int i : {1, 2}) cluster.Disconnect(cluster.stage(i));
  cluster.stage(0).Fail("DISK_FULL", "write /run/model/a: No space left");
  cluster.Run();
  EXPECT_OK(cluster.ReportExit("stage-1", cluster.stage(1).Registration().pid(),
                               137));
  cluster.Advance(absl::Seconds(3));
  cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL);
  const auto late = cluster.Occurrences("STAGE_DID_NOT_ABORT");
  ASSERT_THAT(late, SizeIs(1));
  EXPECT_EQ(late[0].message(), "still not free after the abort: stage-2");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
