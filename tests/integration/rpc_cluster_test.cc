// Jobs on a cluster over real gRPC and TCP, from file to model.
#include "tests/integration/rpc_cluster.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/bind_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using ::penstock::testing::kRpcLimit;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using RpcClusterTest = ::penstock::testing::RpcCluster;

TEST_F(RpcClusterTest, AJobRunsFromFileToModel) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request({.stages = 2, .steps = 4})));
  std::vector<v1::JobEvent> events;
  const v1::Job job = Watch(created.id(), events);
  EXPECT_EQ(job.state(), v1::Job::STATE_SUCCEEDED) << job.DebugString();
  int64_t step = 0;
  for (const v1::JobEvent& event : events) {
    if (!event.has_metrics()) continue;
    EXPECT_EQ(event.metrics().step(), ++step);
  }
  EXPECT_EQ(step, 4);
  for (const char* name :
       {"job.yaml", "metrics.jsonl", "summary.json", "events.jsonl",
        "trace.json", "predicted.json", "profile.json", "model/config.json",
        "model/model-00001-of-00002.safetensors",
        "model/model.safetensors.index.json"}) {
    EXPECT_TRUE(std::filesystem::exists(dir_.Path("run") + "/" + name)) << name;
  }
}

TEST_F(RpcClusterTest, AJobRunsOverIPv6) {
  data_address_ = "[::1]";
  if (const absl::Status there = common::rpc::TryListen(Listen("any"));
      !there.ok()) {
    GTEST_SKIP() << "this machine has no IPv6 loopback: " << there;
  }
  StartCoordinator();
  EXPECT_THAT(coordinator_->address().ToString(),
              ::testing::StartsWith("[::1]:"));
  StartStages(3);
  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request({.stages = 3, .steps = 2})));
  std::vector<v1::JobEvent> events;
  const v1::Job job = Watch(created.id(), events);
  EXPECT_EQ(job.state(), v1::Job::STATE_SUCCEEDED) << job.DebugString();
  ASSERT_OK_AND_ASSIGN(const v1::ListStagesResponse list,
                       client_->ListStages());
  EXPECT_THAT(list.stages(), SizeIs(3));
  for (const v1::Stage& stage : list.stages()) {
    EXPECT_THAT(stage.data_address(), ::testing::StartsWith("[::1]:"));
    EXPECT_THAT(stage.monitor_address(), ::testing::StartsWith("[::1]:"));
  }
}

TEST_F(RpcClusterTest, ValidateOnlyMakesNothing) {
  StartCoordinator();
  v1::CreateJobRequest request = Request({.stages = 2, .steps = 4});
  request.set_validate_only(true);
  ASSERT_OK_AND_ASSIGN(const v1::Job job, client_->CreateJob(request));
  EXPECT_EQ(job.stages(), 2);
  EXPECT_EQ(job.device(), "reference");
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("run")));
}

TEST_F(RpcClusterTest, BadJobFileComesBackWithPositions) {
  StartCoordinator();
  v1::CreateJobRequest request = Request({.stages = 2, .steps = 4});
  request.set_file(request.file() + "block_size: 3\n");
  const auto job = client_->CreateJob(request);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("tiny.yaml:9:1: block_size"));
}

TEST_F(RpcClusterTest, CancelledJobLeavesStagesThatTakeTheNextOne) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(
      const v1::Job first,
      client_->CreateJob(Request({.stages = 2, .steps = 100000})));
  int64_t revision = 0;
  v1::Job ended;
  ASSERT_OK(
      client_->WatchJob(first.id(), revision, [&](const v1::JobEvent& event) {
        if (event.has_metrics() && event.metrics().step() == 3) {
          EXPECT_OK(client_->CancelJob(first.id(), absl::Seconds(10)).status());
        }
        if (event.has_job()) ended = event.job();
        return true;
      }));
  EXPECT_EQ(ended.state(), v1::Job::STATE_CANCELLED);
  v1::CreateJobRequest again = Request({.stages = 2, .steps = 2});
  again.set_run_directory(dir_.Path("run2"));
  ASSERT_OK_AND_ASSIGN(const v1::Job second, client_->CreateJob(again));
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(Watch(second.id(), events).state(), v1::Job::STATE_SUCCEEDED);
}

TEST_F(RpcClusterTest, StoppedStageFailsTheJobAndIsNamed) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(
      const v1::Job created,
      client_->CreateJob(Request({.stages = 2, .steps = 100000})));
  int64_t revision = 0;
  v1::Job ended;
  ASSERT_OK(
      client_->WatchJob(created.id(), revision, [&](const v1::JobEvent& event) {
        if (event.has_metrics() && event.metrics().step() == 2) {
          stages_[1]->Stop();
        }
        if (event.has_job()) ended = event.job();
        return true;
      }));
  EXPECT_EQ(ended.state(), v1::Job::STATE_FAILED);
  EXPECT_EQ(ended.reason(), v1::Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(ended.cause().message(), HasSubstr("stage-1"));
}

TEST_F(RpcClusterTest, StagesAreListedAndServersEndCleanly) {
  StartCoordinator();
  StartStages(3);
  v1::ListStagesResponse stages;
  const absl::Time deadline = absl::Now() + kRpcLimit;
  do {
    ASSERT_OK_AND_ASSIGN(stages, client_->ListStages());
  } while (stages.stages_size() < 3 && absl::Now() < deadline);
  ASSERT_THAT(stages.stages(), SizeIs(3));
  EXPECT_EQ(stages.stages(0).name(), "stage-0");
  EXPECT_EQ(stages.stages(2).device().kind(), "reference");
  stages_.clear();
  client_.reset();
  coordinator_.reset();
  EXPECT_FALSE(std::filesystem::exists(Socket("coordinator").path));
  EXPECT_FALSE(std::filesystem::exists(Socket("stage-0").path));
}

TEST_F(RpcClusterTest, SecondServerOnOneSocketIsRefused) {
  StartCoordinator();
  coordinator::Coordinator::Options options;
  options.listen = Socket("coordinator");
  const auto second = coordinator::Coordinator::Start(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("address in use"));
  EXPECT_OK(client_->Health("readiness").status());  // The first one lives.
}

}  // namespace
}  // namespace penstock
