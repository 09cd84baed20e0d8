// What people ask of jobs and stages, over real gRPC.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/grpc_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/job_service.grpc.pb.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "penstock/v1/stage_service.grpc.pb.h"
#include "tests/integration/rpc_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using ::penstock::testing::kRpcLimit;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using RpcReadsTest = ::penstock::testing::RpcCluster;

// A unary call of `method` with a deadline.
template <typename Response, typename Stub, typename Request>
grpc::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*,
                                               const Request&, Response*),
                  const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kRpcLimit));
  return (stub.*method)(&context, request, &response);
}

TEST_F(RpcReadsTest, JobsAreAnsweredOneByOneAndByThePage) {
  StartCoordinator();
  std::vector<std::string> ids;  // Newest first, as they are listed.
  for (int i = 0; i < 3; ++i) {
    v1::CreateJobRequest request = Request({.stages = 2, .steps = 2});
    request.set_run_directory(dir_.Path(absl::StrCat("run", i)));
    ASSERT_OK_AND_ASSIGN(const v1::Job job, client_->CreateJob(request));
    ids.insert(ids.begin(), job.id());
  }
  using Stub = v1::JobService::Stub;
  const auto stub = v1::JobService::NewStub(common::rpc::CreateChannel(
      Socket("coordinator"), common::rpc::ChannelUse::kShared));

  v1::GetJobRequest get;
  v1::Job job;
  get.set_job_id(ids[2]);
  ASSERT_TRUE(Call(*stub, &Stub::GetJob, get, job).ok());
  EXPECT_EQ(job.id(), ids[2]);
  EXPECT_EQ(job.state(), v1::Job::STATE_QUEUED);
  EXPECT_EQ(job.run_directory(), dir_.Path("run0"));
  get.set_job_id("tiny");  // The newest of the name.
  ASSERT_TRUE(Call(*stub, &Stub::GetJob, get, job).ok());
  EXPECT_EQ(job.id(), ids[0]);
  get.set_job_id("huge");
  const grpc::Status missing = Call(*stub, &Stub::GetJob, get, job);
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("huge"));

  v1::ListJobsRequest list;
  v1::ListJobsResponse page;
  list.set_page_size(2);
  ASSERT_TRUE(Call(*stub, &Stub::ListJobs, list, page).ok());
  ASSERT_THAT(page.jobs(), SizeIs(2));
  EXPECT_EQ(page.jobs(0).id(), ids[0]);
  EXPECT_EQ(page.jobs(1).id(), ids[1]);
  EXPECT_NE(page.next_page_token(), "");
  list.set_page_token(page.next_page_token());
  ASSERT_TRUE(Call(*stub, &Stub::ListJobs, list, page).ok());
  ASSERT_THAT(page.jobs(), SizeIs(1));
  EXPECT_EQ(page.jobs(0).id(), ids[2]);
  EXPECT_EQ(page.next_page_token(), "");
  list.set_page_size(-1);
  EXPECT_EQ(Call(*stub, &Stub::ListJobs, list, page).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcReadsTest, StagesAreAnsweredOneByOneAndByThePage) {
  StartCoordinator();
  StartStages(2);
  v1::ListStagesResponse all;
  const absl::Time deadline = absl::Now() + kRpcLimit;
  do {
    ASSERT_OK_AND_ASSIGN(all, client_->ListStages());
  } while (all.stages_size() < 2 && absl::Now() < deadline);
  ASSERT_THAT(all.stages(), SizeIs(2));
  using Stub = v1::StageService::Stub;
  const auto stub = v1::StageService::NewStub(common::rpc::CreateChannel(
      Socket("coordinator"), common::rpc::ChannelUse::kShared));

  v1::GetStageRequest get;
  v1::Stage stage;
  get.set_stage_name("stage-1");
  ASSERT_TRUE(Call(*stub, &Stub::GetStage, get, stage).ok());
  EXPECT_EQ(stage.name(), "stage-1");
  EXPECT_EQ(stage.incarnation(), all.stages(1).incarnation());
  EXPECT_EQ(stage.device().kind(), "reference");
  get.set_stage_name("stage-9");
  const grpc::Status missing = Call(*stub, &Stub::GetStage, get, stage);
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(missing.error_message(), "there is no stage stage-9");

  v1::ListStagesRequest list;
  v1::ListStagesResponse page;
  list.set_page_size(1);
  ASSERT_TRUE(Call(*stub, &Stub::ListStages, list, page).ok());
  ASSERT_THAT(page.stages(), SizeIs(1));
  EXPECT_EQ(page.stages(0).name(), "stage-0");
  list.set_page_token(page.next_page_token());
  ASSERT_TRUE(Call(*stub, &Stub::ListStages, list, page).ok());
  ASSERT_THAT(page.stages(), SizeIs(1));
  EXPECT_EQ(page.stages(0).name(), "stage-1");
  EXPECT_EQ(page.next_page_token(), "");

  // The stage says the same of itself.
  const auto monitor =
      v1::StageMonitorService::NewStub(common::rpc::CreateChannel(
          Socket("stage-1"), common::rpc::ChannelUse::kShared));
  v1::StageStatus status;
  ASSERT_TRUE(Call(*monitor, &v1::StageMonitorService::Stub::GetStage,
                   v1::GetStageStatusRequest(), status)
                  .ok());
  EXPECT_EQ(status.name(), "stage-1");
  EXPECT_EQ(status.incarnation(), all.stages(1).incarnation());
  EXPECT_EQ(status.state(), v1::Stage::STATE_REGISTERED);
  EXPECT_EQ(status.job_id(), "");
  EXPECT_EQ(status.rank(), -1);
}

}  // namespace
}  // namespace penstock
