// What a cluster refuses on its streams and calls, and that nobody else is the
// worse for it.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/message_limit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/job_service.grpc.pb.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "tests/integration/rpc_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using ::penstock::testing::kRpcLimit;
using ::testing::HasSubstr;

using RpcLimitsTest = ::penstock::testing::RpcCluster;

// How a StageSession ends whose only message is `bytes`; nullopt: it sends
// none.
grpc::Status EndOfSession(const common::rpc::Address& address,
                          const std::optional<std::string>& bytes) {
  const auto channel =
      common::rpc::CreateChannel(address, common::rpc::ChannelUse::kSession);
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(channel);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kRpcLimit));
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

TEST_F(RpcLimitsTest, ASessionThatDoesNotBeginWithHelloIsEndedWithAStatus) {
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
  v1::CreateJobRequest request = Request({.stages = 1, .steps = 2});
  ASSERT_OK_AND_ASSIGN(const v1::Job created, client_->CreateJob(request));
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(Watch(created.id(), events).state(), v1::Job::STATE_SUCCEEDED);
}

// On this code a stage stops saying it (server/service/session_core.h).
TEST_F(RpcLimitsTest, AMessageOverTheLimitEndsTheSessionWithResourceExhausted) {
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

TEST_F(RpcLimitsTest, OneWatchTooManyIsAnswered) {
  // More than gRPC's usual limit of streams a connection, beyond which calls
  // wait silently.
  constexpr int kWatches = 300;
  StartCoordinator({.watches = kWatches});
  ASSERT_OK_AND_ASSIGN(const v1::Job job,
                       client_->CreateJob(Request({.stages = 2, .steps = 2})));
  const auto stub = v1::JobService::NewStub(common::rpc::CreateChannel(
      Socket("coordinator"), common::rpc::ChannelUse::kShared));
  v1::WatchJobRequest request;
  request.set_job_id(job.id());
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::JobEvent>> reader;
    bool Begins(v1::JobService::Stub& stub, const v1::WatchJobRequest& job) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + kRpcLimit));
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
  for (const absl::Time end = absl::Now() + kRpcLimit;
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

TEST_F(RpcLimitsTest, OneWatchOfAStageTooManyIsAnswered) {
  StartCoordinator();
  StartStages(1);
  const auto stub = v1::StageMonitorService::NewStub(common::rpc::CreateChannel(
      Socket("stage-0"), common::rpc::ChannelUse::kShared));
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::StageStatus>> reader;
  };
  const auto begins = [&stub](Watch& watch) {
    watch.context.set_deadline(absl::ToChronoTime(absl::Now() + kRpcLimit));
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

TEST_F(RpcLimitsTest, OneSessionTooManyIsAnswered) {
  StartCoordinator({.sessions = 0});
  const grpc::Status status = EndOfSession(Socket("coordinator"), "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("stage sessions"));
}

TEST_F(RpcLimitsTest, OneCallTooManyIsAnswered) {
  StartCoordinator({.calls = 0});
  const absl::Status status = client_->ListStages().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("try again"));
}

TEST_F(RpcLimitsTest, JobsToReadTakeNoPlaceOfOtherCalls) {
  StartCoordinator({.jobs = 0});
  const absl::Status status = client_->CreateJob({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("jobs to read and plan"));
  EXPECT_OK(client_->ListStages().status());
}

}  // namespace
}  // namespace penstock
