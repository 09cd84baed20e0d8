// Jobs before they have stages: created, repeated, waiting their turn.

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using v1::Job;

TEST(CoreQueueTest, StagesAreFreeAgainAndServeTheNextJob) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 1)).status());
  NewJob next = TinyJob(2, 1);
  next.request.set_run_directory("/runs/next");
  ASSERT_OK(cluster.Create(next).status());
  EXPECT_EQ(cluster.Job().state(), Job::STATE_QUEUED);
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  for (const v1::Stage& stage : cluster.core->ListStages(cluster.now())) {
    EXPECT_EQ(stage.state(), v1::Stage::STATE_REGISTERED);
    EXPECT_EQ(stage.job_id(), "");
  }
}

TEST(CoreQueueTest, MissingStagesAreNamedWithTheirLastContactAndError) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(3, 1)).status());
  cluster.Disconnect(cluster.stage(1));
  cluster.Advance(absl::Seconds(25));
  cluster.Disconnect(cluster.stage(0));
  cluster.Advance(absl::Seconds(6));
  const auto notices = cluster.Occurrences("WAITING_FOR_STAGES");
  ASSERT_EQ(notices.size(), 2);
  EXPECT_THAT(
      notices[1].message(),
      AllOf(HasSubstr("; free: none; not free: stage-0 (not connected, last "
                      "heard of 5s ago), stage-1 (LOST, last heard of 30s ago: "
                      "stage-1 (incarnation "),
            HasSubstr("was silent for 10s")));
}

TEST(CoreQueueTest, AJobWaitsForItsStagesAndSaysSo) {
  FakeCluster cluster;
  cluster.Start(1);
  ASSERT_OK(cluster.Create(TinyJob(2, 1)).status());
  cluster.Advance(absl::Seconds(31));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_QUEUED);
  const auto notices = cluster.Occurrences("WAITING_FOR_STAGES");
  ASSERT_EQ(notices.size(), 2);  // At once, and again.
  EXPECT_THAT(notices[0].message(), StartsWith("waits for 2 stages"));
  EXPECT_THAT(notices[1].message(), StartsWith("waited 30s for 2 stages"));
  EXPECT_THAT(notices[1].message(),
              HasSubstr("2 stages of pool default, device cuda or cpu; "
                        "free: stage-0"));
}

TEST(CoreQueueTest, ARepeatedRequestGetsTheSameJob) {
  FakeCluster cluster;
  NewJob job = TinyJob(1, 1);
  job.request.set_request_id("9b2c8e04-5a1d-4c7e-9f00-0123456789ab");
  ASSERT_OK_AND_ASSIGN(const Job first, cluster.Create(job));
  ASSERT_OK_AND_ASSIGN(const Job second, cluster.Create(job));
  EXPECT_EQ(first.id(), second.id());
  EXPECT_THAT(first.id(), ::testing::StartsWith("tiny-"));
  Actions actions;
  ASSERT_OK_AND_ASSIGN(const auto all, cluster.core->ListJobs("", 10));
  EXPECT_EQ(all.size(), 1);
}

TEST(CoreQueueTest, ARequestIdOfAnotherRequestIsRefused) {
  FakeCluster cluster;
  NewJob job = TinyJob(1, 1);
  job.request.set_request_id("9b2c8e04-5a1d-4c7e-9f00-0123456789ab");
  ASSERT_OK_AND_ASSIGN(const Job first, cluster.Create(job));
  job.request.add_overrides("steps=7");
  EXPECT_THAT(cluster.Create(job).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("made job " + first.id())));
}

TEST(CoreQueueTest, ARequestIdIsAUuid) {
  FakeCluster cluster;
  NewJob job = TinyJob(1, 1);
  job.request.set_request_id("zz\n");
  EXPECT_THAT(cluster.Create(job).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("request_id \"zz\\n\" is no UUID")));
}

TEST(CoreQueueTest, TwoJobsDoNotWriteToOneFolder) {
  FakeCluster cluster;
  cluster.Start(1);
  ASSERT_OK_AND_ASSIGN(const Job first, cluster.Create(TinyJob(1, 1)));
  EXPECT_THAT(cluster.Create(TinyJob(1, 1)).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(first.id()), HasSubstr("/runs/tiny"))));
  for (const std::string overlapping : {"/runs", "/runs/tiny/model"}) {
    NewJob job = TinyJob(1, 1);
    job.request.set_run_directory(overlapping);
    EXPECT_THAT(
        cluster.Create(job).status(),
        StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("\"/runs/tiny\"")))
        << overlapping;
  }
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  EXPECT_OK(cluster.Create(TinyJob(1, 1)).status());
}

TEST(CoreQueueTest, AFolderThatCannotBeUsedRefusesANewJobOnly) {
  FakeCluster cluster;
  cluster.Start(1);
  NewJob job = TinyJob(1, 1);
  job.request.set_request_id("6f1e2d3c-0a1b-4c2d-8e3f-405162738495");
  ASSERT_OK_AND_ASSIGN(const Job first, cluster.Create(job));
  job.run_directory_fault = absl::InvalidArgumentError("it holds job.yaml");
  ASSERT_OK_AND_ASSIGN(const Job again, cluster.Create(job));
  EXPECT_EQ(again.id(), first.id());
  job.request.clear_request_id();
  EXPECT_THAT(
      cluster.Create(job).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "it holds job.yaml"));
}

TEST(CoreQueueTest, ValidateOnlyCreatesNothing) {
  FakeCluster cluster;
  NewJob job = TinyJob(1, 1);
  job.request.set_validate_only(true);
  ASSERT_OK_AND_ASSIGN(const Job answer, cluster.Create(job));
  EXPECT_EQ(answer.id(), "");
  EXPECT_THAT(answer.resolved_yaml(), HasSubstr("tiny"));
  ASSERT_OK_AND_ASSIGN(const auto all, cluster.core->ListJobs("", 10));
  EXPECT_TRUE(all.empty());
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
  EXPECT_EQ(cluster.Occurrences("WAITING_FOR_STAGES").size(), 21);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
