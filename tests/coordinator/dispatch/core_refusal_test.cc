// Jobs that are refused: before they are created, and when inputs are checked.
#include <algorithm>
#include <string>
#include <utility>

#include "common/status/error_details.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using v1::Job;

TEST(CoreRefusalTest, WhatThePlannerFindsIsRefusedAtItsPlace) {
  FakeCluster cluster;
  NewJob job = TinyJob(7, 2);
  job.positions.AddFilePosition("pipeline.stages", 9, 11);
  const absl::Status refused = cluster.Create(job).status();
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tiny.yaml:9:11: pipeline.stages"),
                             HasSubstr("fill at most 6"))));
  EXPECT_EQ(common::status::Reason(refused), "INVALID_SPEC");
  ASSERT_OK_AND_ASSIGN(const auto all, cluster.core->ListJobs("", 10));
  EXPECT_TRUE(all.empty());
}

TEST(CoreRefusalTest, ATooSmallMemoryLimitIsOutOfMemoryAtItsPlace) {
  FakeCluster cluster;
  NewJob job = TinyJob(2, 2);
  job.spec.pipeline.memory_limit = 1000;
  job.positions.AddFilePosition("pipeline.memory_limit", 3, 5);
  const absl::Status refused = cluster.Create(job).status();
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tiny.yaml:3:5"), HasSubstr("stage 0"),
                             HasSubstr("more than its limit of 1000"))));
  EXPECT_EQ(common::status::Reason(refused), "OUT_OF_MEMORY");
}

TEST(CoreRefusalTest, AScheduleFileThatIsNoneIsRefused) {
  FakeCluster cluster;
  NewJob job = TinyJob(2, 2);
  job.spec.pipeline.schedule = spec::ScheduleKind::kFile;
  job.spec.pipeline.schedule_file = "orders.csv";
  job.schedule_text = "0F0,1F0garbage\n";
  EXPECT_THAT(cluster.Create(job).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pipeline.schedule: orders.csv:1:")));
  job.schedule_text = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_OK(cluster.Create(job).status());
}

TEST(CoreRefusalTest, ATakenIdIsRefused) {
  FakeCluster cluster;
  NewJob job = TinyJob(1, 1);
  job.request.set_job_id("mine");
  ASSERT_OK(cluster.Create(job).status());
  EXPECT_THAT(cluster.Create(job).status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("mine")));
}

// A job of two stages that fails while inputs are checked.
Job FailedJob(FakeCluster& cluster, const NewJob& job) {
  const auto created = cluster.Create(job);
  EXPECT_TRUE(created.ok()) << created.status();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_FAILED);
  EXPECT_FALSE(cluster.AnyFile());  // A refusal leaves no folder.
  EXPECT_FALSE(cluster.Job().summary_json().empty());
  // And the stages are free again.
  for (const v1::Stage& stage : cluster.core->ListStages(cluster.now())) {
    EXPECT_EQ(stage.state(), v1::Stage::STATE_REGISTERED);
  }
  return cluster.Job();
}

TEST(CoreRefusalTest, InputThatAStageDoesNotSee) {
  FakeCluster cluster;
  cluster.Start(2);
  v1::Cause cause;
  cause.set_code(5);
  cause.set_message("/jobs/tiny/train.txt: no such file");
  cluster.stage(1).check_failure = cause;
  cluster.stage(1).failed_key = "data.train";
  NewJob job = TinyJob(2, 2);
  job.positions.AddFilePosition("data.train", 4, 10);
  const Job failed = FailedJob(cluster, job);
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(
      failed.cause().message(),
      AllOf(HasSubstr("tiny.yaml:4:10: data.train"), HasSubstr("stage-1"),
            HasSubstr("host-of-stage-1"), HasSubstr("/jobs/tiny/train.txt")));
}

TEST(CoreRefusalTest, AStageThatDoesNotAnswerHasNotSeenItsInput) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_check = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  cluster.Advance(absl::Seconds(9));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_PLANNING);
  cluster.Advance(absl::Seconds(1.1));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_FAILED);
  EXPECT_EQ(cluster.Job().reason(), Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(cluster.Job().cause().message(),
              AllOf(HasSubstr("train.txt"), HasSubstr("stage-1"),
                    HasSubstr("host-of-stage-1")));
}

TEST(CoreRefusalTest, AStageThatReadsItsInputsMayTakeItsTime) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_check = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  // A corpus of which a piece comes every 9 seconds.
  for (int piece = 0; piece < 100; ++piece) {
    cluster.Advance(absl::Seconds(9));
    ASSERT_EQ(cluster.Job().state(), Job::STATE_PLANNING) << piece;
    ++cluster.stage(1).progress;
  }
  cluster.stage(1).AnswerCheck();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreRefusalTest, AStageThatStopsReadingIsNamedAndOneThatReadsIsNot) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).answers_check = cluster.stage(1).answers_check = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  for (int second = 0; second < 60; ++second) {
    ++cluster.stage(0).progress;
    if (second < 30) ++cluster.stage(1).progress;
    cluster.Advance(absl::Seconds(1));
    ASSERT_EQ(cluster.Job().state(),
              second < 39 ? Job::STATE_PLANNING : Job::STATE_FAILED)
        << second;
  }
  EXPECT_EQ(cluster.Job().reason(), Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(cluster.Job().cause().message(),
              AllOf(HasSubstr("train.txt"), HasSubstr("for 10s by stage-1"),
                    Not(HasSubstr("stage-0"))));
}

TEST(CoreRefusalTest, ReadersThatSeeDifferentData) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).fingerprint = "beef";
  const Job failed = FailedJob(cluster, TinyJob(2, 2));
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(failed.cause().message(),
              AllOf(HasSubstr("host-of-stage-0"), HasSubstr("host-of-stage-1"),
                    HasSubstr("f00d"), HasSubstr("beef")));
}

// The key is what the stage says, not what its message happens to mention.
TEST(CoreRefusalTest, AFailureWithoutAKeyHasNoPlaceInTheFile) {
  FakeCluster cluster;
  cluster.Start(2);
  v1::Cause cause;
  cause.set_code(3);
  cause.set_message("the model does not suit /jobs/tiny/train.txt");
  cluster.stage(1).check_failure = cause;
  NewJob job = TinyJob(2, 2);
  job.positions.AddFilePosition("data.train", 4, 10);
  const Job failed = FailedJob(cluster, job);
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INVALID_SPEC);
  EXPECT_EQ(failed.cause().message(),
            "stage stage-1 on host host-of-stage-1: the model does not suit "
            "/jobs/tiny/train.txt");
}

TEST(CoreRefusalTest, StagesThatSeeDifferentWeights) {
  FakeCluster cluster;
  cluster.Start(3);
  cluster.stage(1).model_digest = "0ld";
  NewJob job = TinyJob(3, 2);
  job.spec.model.from = "llama";
  job.positions.AddFilePosition("model.from", 2, 8);
  const Job failed = FailedJob(cluster, job);
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(
      failed.cause().message(),
      AllOf(HasSubstr("tiny.yaml:2:8: model.from"),
            HasSubstr("stage stage-0 on host host-of-stage-0 sees weights "
                      "with digest ca11"),
            HasSubstr("stage stage-1 on host host-of-stage-1 sees weights "
                      "with digest 0ld"),
            HasSubstr("give every host the same files")));
}

TEST(CoreRefusalTest, StagesThatSeeTheSameWeightsGoOn) {
  FakeCluster cluster;
  cluster.Start(2);
  NewJob job = TinyJob(2, 2);
  job.spec.model.from = "llama";
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreRefusalTest, DataShorterThanOneSequence) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).sequences = 0;
  const Job failed = FailedJob(cluster, TinyJob(1, 2));
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INVALID_SPEC);
  EXPECT_THAT(failed.cause().message(), HasSubstr("not one sequence of 16"));
}

TEST(CoreRefusalTest, AVocabularyTooSmallForTheData) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).largest_id = 256;
  const Job failed = FailedJob(cluster, TinyJob(1, 2));
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_INVALID_SPEC);
  EXPECT_THAT(failed.cause().message(),
              AllOf(HasSubstr("model.vocab"), HasSubstr("id 256")));
}

TEST(CoreRefusalTest, FewerEpochsThanOneBatch) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).sequences = 3;
  NewJob job = TinyJob(1, 8);
  job.spec.steps.reset();
  job.spec.epochs = 2;
  EXPECT_THAT(FailedJob(cluster, job).cause().message(),
              HasSubstr("epochs: 2 passes over 3 training sequences are less "
                        "than one step"));
}

TEST(CoreRefusalTest, NoValidationSequence) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).validation_sequences = 0;
  NewJob job = TinyJob(1, 2);
  job.spec.data.validation = {{.share_millionths = 10}};
  job.spec.evaluate = spec::EvaluateSpec{};
  EXPECT_THAT(FailedJob(cluster, job).cause().message(),
              HasSubstr("data.validation"));
}

TEST(CoreRefusalTest, StagesWithoutACommonNumericsId) {
  FakeCluster cluster;
  cluster.Start(1);
  FakeStage& other =
      cluster.AddStage("stage-1", "00000000-0000-4000-8000-000000000001");
  other.numerics_id = "cpu/avx512/1/0";
  Actions actions;
  ASSERT_OK(
      cluster.core->RegisterStage(other.Registration(), cluster.now(), actions)
          .status());
  cluster.Connect(other);
  const Job failed = FailedJob(cluster, TinyJob(2, 2));
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_NUMERICS_MISMATCH);
  EXPECT_THAT(failed.cause().message(),
              AllOf(HasSubstr("stage-0 has cpu/avx2/1/0"),
                    HasSubstr("stage-1 has cpu/avx512/1/0")));
}

// Two stages that may have so much memory each.
void StartWithMemory(FakeCluster& cluster, int64_t bytes,
                     const std::string& group1) {
  for (const int i : {0, 1}) {
    FakeStage& stage = cluster.AddStage(
        "stage-" + std::to_string(i),
        "00000000-0000-4000-8000-00000000000" + std::to_string(i));
    stage.host = "one";
    stage.memory_bytes = bytes;
    stage.memory_group = i == 1 ? group1 : "/jobs";
    Actions actions;
    ASSERT_OK(cluster.core
                  ->RegisterStage(stage.Registration(), cluster.now(), actions)
                  .status());
    cluster.Connect(stage);
  }
}

// Bytes that rank 0 and 1 of the job need.
std::pair<int64_t, int64_t> Needs(const NewJob& job) {
  const auto request = PlanRequestOf(job);
  EXPECT_OK(request.status());
  const auto plan = planner::MakePlan(*request);
  EXPECT_OK(plan.status());
  return {plan->memory[0].total(), plan->memory[1].total()};
}

TEST(CoreRefusalTest, StagesThatShareAMemoryMustFitTogether) {
  const NewJob job = TinyJob(2, 2);
  const auto [first, second] = Needs(job);
  FakeCluster cluster;
  StartWithMemory(cluster, first + second - 1, "/jobs");
  const Job failed = FailedJob(cluster, job);
  EXPECT_EQ(failed.reason(), Job::STATE_REASON_OUT_OF_MEMORY);
  EXPECT_FALSE(failed.has_start_time());  // The client's exit code is 2.
  EXPECT_THAT(
      failed.cause().message(),
      AllOf(HasSubstr("host one (control group /jobs) has " +
                      std::to_string(first + second - 1) + " bytes"),
            HasSubstr("its 2 stages (stage-0, stage-1) need " +
                      std::to_string(first + second) + " together, 1 more")));
}

TEST(CoreRefusalTest, StagesThatFitTogetherOrShareNothingRun) {
  const NewJob job = TinyJob(2, 2);
  const auto [first, second] = Needs(job);
  for (const auto& [bytes, group] :
       {std::pair(first + second, "/jobs"),
        std::pair(std::max(first, second), "/others")}) {
    FakeCluster cluster;
    StartWithMemory(cluster, bytes, group);
    ASSERT_OK(cluster.Create(job).status());
    cluster.Run();
    EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  }
}

TEST(CoreRefusalTest, StagesOfAnotherDeviceKindAreNotChosen) {
  FakeCluster cluster;
  cluster.Start(2);
  NewJob job = TinyJob(2, 2);
  job.spec.device = spec::DeviceKind::kReference;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_QUEUED);
  EXPECT_EQ(cluster.Job().device(), "reference");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
