// A whole cluster over real gRPC and TCP in one process: coordinator, stage
// daemons and client, so that ThreadSanitizer sees every reactor and thread.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/coordinator_client.h"
#include "common/rpc/address.h"
#include "common/rpc/bind_check.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/message_limit.h"
#include "common/sync/mutex.h"
#include "coordinator/coordinator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/job_service.grpc.pb.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "penstock/v1/stage_service.grpc.pb.h"
#include "server/stage_daemon.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using ::penstock::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kIPv6[] = "[::1]";
constexpr absl::Duration kLimit = absl::Seconds(120);

// What one stage daemon said at its end.
struct Ends {
  common::sync::Mutex mutex;
  std::vector<server::StageDaemon::End> all ABSL_GUARDED_BY(mutex);
};

class RpcClusterTest : public ::testing::Test {
 protected:
  void StartCoordinator(const coordinator::service::Limits& limits = {}) {
    coordinator::Coordinator::Options options;
    options.limits = limits;
    options.listen = Listen("coordinator");
    options.state_directory = dir_.Path("state");
    options.embedded = true;
    auto started = coordinator::Coordinator::Start(options);
    ASSERT_OK(started.status());
    coordinator_ = *std::move(started);
    client_ = client::CoordinatorClient::Connect(
        {.address = coordinator_->address(), .timeout = absl::Seconds(30)});
    ASSERT_OK(client_->AwaitServing(kLimit));
  }

  absl::StatusOr<std::unique_ptr<server::StageDaemon>> MakeStage(
      const std::string& name) {
    server::StageDaemon::Options options;
    options.coordinator = coordinator_->address();
    options.listen = Listen(name);
    options.data_address = data_address_;
    options.name = name;
    options.device = "reference";
    options.threads = 1;
    return server::StageDaemon::Start(
        options, [this](const server::StageDaemon::End& end) {
          common::sync::MutexLock lock(&ends_.mutex);
          ends_.all.push_back(end);
        });
  }
  void StartStages(int count) {
    for (int i = 0; i < count; ++i) {
      auto stage = MakeStage(absl::StrCat("stage-", i));
      ASSERT_OK(stage.status());
      stages_.push_back(*std::move(stage));
    }
  }

  // A Unix socket, or a port of the interface for data where that is IPv6.
  common::rpc::Address Listen(const std::string& name) const {
    return data_address_ == kIPv6
               ? *common::rpc::ParseAddress(absl::StrCat(kIPv6, ":0"))
               : Socket(name);
  }
  common::rpc::Address Socket(const std::string& name) const {
    return *common::rpc::ParseAddress(
        absl::StrCat("unix:", dir_.Path(name), ".sock"));
  }

  v1::CreateJobRequest Request(int stages, int steps) {
    dir_.Write("text.txt", std::string(4000, 'a') + std::string(4000, 'b'));
    v1::CreateJobRequest request;
    request.set_file(absl::StrCat(
        "name: tiny\n"
        "model: {family: gpt2, layers: 2, width: 16, heads: 2, context: 16}\n"
        "data: {train: text.txt, validation: 10%}\n"
        "batch: {global: 8, micro_batch: 2}\n"
        "device: reference\n"
        "evaluate: {every: 2, batches: 1}\n"
        "pipeline: {stages: ",
        stages, "}\nsteps: ", steps, "\n"));
    request.set_file_name("tiny.yaml");
    request.set_base_directory(dir_.path());
    request.set_run_directory(dir_.Path("run"));
    return request;
  }

  // Watches until the end; returns the job, and its events.
  v1::Job Watch(const std::string& id, std::vector<v1::JobEvent>& events) {
    int64_t revision = 0;
    v1::Job last;
    EXPECT_OK(client_->WatchJob(id, revision, [&](const v1::JobEvent& event) {
      events.push_back(event);
      if (event.has_job()) last = event.job();
      return true;
    }));
    return last;
  }

  std::string data_address_ = "127.0.0.1";
  tests::fakes::TempDir dir_;
  Ends ends_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  std::unique_ptr<client::CoordinatorClient> client_;
  std::vector<std::unique_ptr<server::StageDaemon>> stages_;
};

TEST_F(RpcClusterTest, AJobRunsFromFileToModel) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request(2, 4)));
  std::vector<v1::JobEvent> events;
  const v1::Job job = Watch(created.id(), events);
  EXPECT_EQ(job.state(), v1::Job::STATE_SUCCEEDED) << job.DebugString();
  int64_t step = 0;
  for (const v1::JobEvent& event : events) {
    if (!event.has_metrics()) continue;
    EXPECT_EQ(event.metrics().step(), ++step);
  }
  EXPECT_EQ(step, 4);
  for (const char* name : {"job.yaml", "metrics.jsonl", "summary.json",
                           "events.jsonl", "trace.json", "model/config.json",
                           "model/model-00001-of-00002.safetensors",
                           "model/model.safetensors.index.json"}) {
    EXPECT_TRUE(std::filesystem::exists(dir_.Path("run") + "/" + name)) << name;
  }
}

TEST_F(RpcClusterTest, AJobRunsOverIPv6) {
  data_address_ = kIPv6;
  if (const absl::Status there = common::rpc::TryListen(Listen("any"));
      !there.ok()) {
    GTEST_SKIP() << "this machine has no IPv6 loopback: " << there;
  }
  StartCoordinator();
  EXPECT_THAT(coordinator_->address().ToString(),
              ::testing::StartsWith("[::1]:"));
  StartStages(3);
  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request(3, 2)));
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
  v1::CreateJobRequest request = Request(2, 4);
  request.set_validate_only(true);
  ASSERT_OK_AND_ASSIGN(const v1::Job job, client_->CreateJob(request));
  EXPECT_EQ(job.stages(), 2);
  EXPECT_EQ(job.device(), "reference");
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("run")));
}

TEST_F(RpcClusterTest, BadJobFileComesBackWithPositions) {
  StartCoordinator();
  v1::CreateJobRequest request = Request(2, 4);
  request.set_file(request.file() + "block_size: 3\n");
  const auto job = client_->CreateJob(request);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("tiny.yaml:9:1: block_size"));
}

TEST_F(RpcClusterTest, CancelledJobLeavesStagesThatTakeTheNextOne) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(const v1::Job first,
                       client_->CreateJob(Request(2, 100000)));
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
  v1::CreateJobRequest again = Request(2, 2);
  again.set_run_directory(dir_.Path("run2"));
  ASSERT_OK_AND_ASSIGN(const v1::Job second, client_->CreateJob(again));
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(Watch(second.id(), events).state(), v1::Job::STATE_SUCCEEDED);
}

TEST_F(RpcClusterTest, StoppedStageFailsTheJobAndIsNamed) {
  StartCoordinator();
  StartStages(2);
  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request(2, 100000)));
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
  const absl::Time deadline = absl::Now() + kLimit;
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

// How a StageSession ends whose only message is `bytes`; nullopt: it sends
// none.
grpc::Status EndOfSession(const common::rpc::Address& address,
                          const std::optional<std::string>& bytes) {
  const auto channel =
      common::rpc::CreateChannel(address, common::rpc::ChannelUse::kSession);
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(
      &context, "/penstock.v1.CoordinationService/StageSession", &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(nullptr);
  next();
  if (bytes.has_value()) {
    const grpc::Slice slice(*bytes);
    stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    next();
  } else {
    stream->WritesDone(nullptr);
    next();
  }
  grpc::ByteBuffer answer;
  do {
    stream->Read(&answer, nullptr);
  } while (next());
  grpc::Status status;
  stream->Finish(&status, nullptr);
  next();
  return status;
}

TEST_F(RpcClusterTest, ASessionThatDoesNotBeginWithHelloIsEndedWithAStatus) {
  StartCoordinator();
  v1::StageMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_progress(3);
  const struct {
    const char* what;
    std::optional<std::string> bytes;
  } kCases[] = {
      {"another message", heartbeat.SerializeAsString()},
      {"an empty message", ""},
      {"garbage", "\xff\xff\xff\xff garbage"},
      {"a truncated message", heartbeat.SerializeAsString().substr(0, 1)},
      {"nothing", std::nullopt},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.what);
    const grpc::Status status = EndOfSession(Socket("coordinator"), each.bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION)
        << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("begins with Hello"));
  }
  // Nobody else is the worse for it.
  StartStages(1);
  v1::CreateJobRequest request = Request(1, 2);
  ASSERT_OK_AND_ASSIGN(const v1::Job created, client_->CreateJob(request));
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(Watch(created.id(), events).state(), v1::Job::STATE_SUCCEEDED);
}

// On this code a stage stops saying it (server/service/session_core.h).
TEST_F(RpcClusterTest,
       AMessageOverTheLimitEndsTheSessionWithResourceExhausted) {
  StartCoordinator();
  v1::StageMessage message;
  message.mutable_end_report()->set_shard_file(std::string(5 << 20, 's'));
  EXPECT_EQ(EndOfSession(Socket("coordinator"), message.SerializeAsString())
                .error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);  // Taken, and no Hello.
  message.mutable_end_report()->set_shard_file(
      std::string(common::rpc::kMaxControlMessageBytes + 1, 's'));
  const grpc::Status status =
      EndOfSession(Socket("coordinator"), message.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("larger than max"));
}

TEST_F(RpcClusterTest, OneWatchTooManyIsAnswered) {
  // More than gRPC's usual limit of streams a connection, beyond which calls
  // wait silently.
  constexpr int kWatches = 300;
  StartCoordinator({.watches = kWatches});
  ASSERT_OK_AND_ASSIGN(const v1::Job job, client_->CreateJob(Request(2, 2)));
  const auto stub = v1::JobService::NewStub(common::rpc::CreateChannel(
      Socket("coordinator"), common::rpc::ChannelUse::kShared));
  v1::WatchJobRequest request;
  request.set_job_id(job.id());
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader;
    bool Begins(v1::JobService::Stub& stub, const v1::WatchJobRequest& job) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
      reader = stub.WatchJob(&context, job);
      v1::JobEvent event;
      return reader->Read(&event);
    }
  };
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < kWatches; ++i) {
    watches.push_back(std::make_unique<Watch>());
    ASSERT_TRUE(watches.back()->Begins(*stub, request)) << i;
  }
  Watch refused;
  EXPECT_FALSE(refused.Begins(*stub, request));
  const grpc::Status status = refused.reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("300 WatchJob streams"));
  // Other calls are none the worse, and one that ends makes room.
  EXPECT_OK(client_->ListStages().status());
  watches.front()->context.TryCancel();
  watches.front()->reader->Finish();
  bool begun = false;
  for (const absl::Time end = absl::Now() + kLimit;
       !begun && absl::Now() < end;) {
    Watch again;
    begun = again.Begins(*stub, request);
    again.context.TryCancel();
    again.reader->Finish();
  }
  EXPECT_TRUE(begun);
  for (const auto& watch : watches) watch->context.TryCancel();
  for (size_t i = 1; i < watches.size(); ++i) watches[i]->reader->Finish();
}

TEST_F(RpcClusterTest, OneWatchOfAStageTooManyIsAnswered) {
  StartCoordinator();
  StartStages(1);
  const auto stub = v1::StageMonitorService::NewStub(common::rpc::CreateChannel(
      Socket("stage-0"), common::rpc::ChannelUse::kShared));
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::StageStatus>> reader;
  };
  const auto begins = [&stub](Watch& watch) {
    watch.context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
    watch.reader = stub->WatchStage(&watch.context, v1::WatchStageRequest());
    v1::StageStatus status;
    return watch.reader->Read(&status);
  };
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 64; ++i) {
    watches.push_back(std::make_unique<Watch>());
    ASSERT_TRUE(begins(*watches.back())) << i;
  }
  Watch refused;
  EXPECT_FALSE(begins(refused));
  const grpc::Status status = refused.reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("64 WatchStage streams"));
  for (const auto& watch : watches) {
    watch->context.TryCancel();
    watch->reader->Finish();
  }
}

TEST_F(RpcClusterTest, OneSessionTooManyIsAnswered) {
  StartCoordinator({.sessions = 0});
  const grpc::Status status = EndOfSession(Socket("coordinator"), "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("stage sessions"));
}

TEST_F(RpcClusterTest, OneCallTooManyIsAnswered) {
  StartCoordinator({.calls = 0});
  const absl::Status status = client_->ListStages().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("try again"));
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

// A unary call of `method` with a deadline.
template <typename Response, typename Stub, typename Request>
grpc::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*,
                                               const Request&, Response*),
                  const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
  return (stub.*method)(&context, request, &response);
}

TEST_F(RpcClusterTest, JobsAreAnsweredOneByOneAndByThePage) {
  StartCoordinator();
  std::vector<std::string> ids;  // Newest first, as they are listed.
  for (int i = 0; i < 3; ++i) {
    v1::CreateJobRequest request = Request(2, 2);
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

TEST_F(RpcClusterTest, StagesAreAnsweredOneByOneAndByThePage) {
  StartCoordinator();
  StartStages(2);
  v1::ListStagesResponse all;
  const absl::Time deadline = absl::Now() + kLimit;
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
