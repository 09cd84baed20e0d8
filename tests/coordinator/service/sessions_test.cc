// Streams of stages that say nothing, too much, or never listen: what they cost
// the coordinator, and whom they keep out.
#include "coordinator/service/sessions.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/ids/random.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/grpc_target.h"
#include "common/rpc/rpc_server.h"
#include "common/sync/mutex.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/jobs/in_memory_job_store.h"
#include "coordinator/service/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.grpc.pb.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(60);

class SessionsTest : public ::testing::Test, private ActionSink {
 protected:
  void Start(int sessions) {
    dispatch::Options options;
    options.random = common::ids::SystemRandom();
    core_ = std::make_unique<dispatch::Core>(options, store_);
    admissions_ = std::make_unique<Admissions>(Limits{.sessions = sessions});
    loop_ = std::make_unique<CoreLoop>(clock_, *core_,
                                       static_cast<ActionSink&>(*this));
    sessions_ = Sessions::Create(*loop_, clock_, *admissions_, reactors_);
    loop_->Start();
    auto started = common::rpc::RpcServer::Start(
        *common::rpc::ParseAddress(absl::StrCat("unix:", dir_.Path("a.sock"))),
        {sessions_->grpc_service()}, reactors_);
    ASSERT_OK(started.status());
    server_ = *std::move(started);
    stub_ = v1::CoordinationService::NewStub(common::rpc::CreateChannel(
        server_->address(), common::rpc::ChannelUse::kSession));
  }
  // Before this is no sink any more.
  void TearDown() override {
    server_.reset();
    if (loop_ != nullptr) loop_->Stop();
  }

  struct Stream {
    explicit Stream(v1::CoordinationService::Stub& stub) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + kLimit));
      stream = stub.StageSession(&context);
    }
    // Reads to its end.
    grpc::Status End() {
      v1::CoordinatorMessage message;
      while (stream->Read(&message)) {
      }
      return stream->Finish();
    }

    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::StageMessage, v1::CoordinatorMessage>>
        stream;
  };

  // Of a stream that ends without Hello.
  grpc::StatusCode EndOfEmptyStream() {
    Stream stream(*stub_);
    stream.stream->WritesDone();
    return stream.End().error_code();
  }
  void AwaitEndOfEmptyStream(grpc::StatusCode code) {
    const absl::Time end = absl::Now() + kLimit;
    while (EndOfEmptyStream() != code) ASSERT_LT(absl::Now(), end);
  }

  tests::fakes::FakeClock clock_;
  std::unique_ptr<CoreLoop> loop_;
  std::unique_ptr<common::rpc::RpcServer> server_;
  std::unique_ptr<v1::CoordinationService::Stub> stub_;

 private:
  void SendToStage(dispatch::SendToStage action) override {
    sessions_->Send(std::move(action));
  }
  void CloseSession(const dispatch::CloseSession& action) override {
    sessions_->Close(action);
  }
  void ProbeMonitor(const dispatch::ProbeMonitor&) override {}
  void WriteJobFile(dispatch::WriteJobFile) override {}
  void ChangeJobFolder(dispatch::ChangeJobFolder) override {}
  void MakePlan(dispatch::MakePlan) override {}
  void PublishJob(const dispatch::PublishJob&) override {}
  void ForgetJob(const dispatch::ForgetJob&) override {}

  tests::fakes::TempDir dir_;
  jobs::InMemoryJobStore store_;
  std::unique_ptr<dispatch::Core> core_;
  std::unique_ptr<Admissions> admissions_;
  common::rpc::ReactorRegistry reactors_;
  std::unique_ptr<Sessions> sessions_;
};

TEST_F(SessionsTest, AStreamWithoutHelloKeepsNobodyOut) {
  Start(1);
  Stream speechless(*stub_);
  // Until it is there.
  AwaitEndOfEmptyStream(grpc::StatusCode::RESOURCE_EXHAUSTED);
  clock_.Advance(absl::Seconds(4.9));
  EXPECT_EQ(EndOfEmptyStream(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(EndOfEmptyStream(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  clock_.Advance(absl::Seconds(0.1));
  AwaitEndOfEmptyStream(grpc::StatusCode::FAILED_PRECONDITION);
  const grpc::Status status = speechless.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("no Hello within 5s"));
}

TEST_F(SessionsTest, AStageIsReadNoFasterThanTheCoreWorks) {
  constexpr int kMessages = 32;
  Start(1);
  common::sync::Notification go_on;
  loop_->Post([&go_on](auto&, const auto&, auto&) {
    go_on.WaitForNotificationWithTimeout(kLimit);
  });
  Stream stream(*stub_);
  common::sync::Notification all_written;
  std::thread writing([&] {
    v1::StageMessage message;
    message.mutable_end_report()->set_shard_file(std::string(2 << 20, 's'));
    for (int i = 0; i < kMessages; ++i) {
      if (!stream.stream->Write(message)) return;
    }
    all_written.Notify();
  });
  EXPECT_FALSE(all_written.WaitForNotificationWithTimeout(absl::Seconds(2)));
  go_on.Notify();
  writing.join();  // It was no Hello: the stream has ended.
  EXPECT_EQ(stream.End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(SessionsTest, AStageThatReadsNothingIsEnded) {
  // Until what it does not read fills gRPC's window, and then the queue. The
  // window stays as it begins, at 64 KiB.
  Start(1);
  grpc::ChannelArguments fixed_window;
  fixed_window.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto stub = v1::CoordinationService::NewStub(grpc::CreateCustomChannel(
      common::rpc::GrpcTarget(server_->address()),
      grpc::InsecureChannelCredentials(), fixed_window));
  v1::RegisterStageRequest request;
  request.set_stage_name("stage-0");
  request.set_incarnation("00000000-0000-4000-8000-000000000000");
  request.mutable_device()->set_kind("cpu");
  request.add_numerics_ids("cpu/avx2/1/0");
  request.mutable_protocol()->set_lowest(1);
  request.mutable_protocol()->set_highest(1);
  request.set_host("host");
  request.set_pid(7);
  request.set_data_address("127.0.0.1:1");
  request.set_monitor_address("127.0.0.1:2");
  v1::RegisterStageResponse registered;
  grpc::ClientContext context;
  const grpc::Status answer =
      stub->RegisterStage(&context, request, &registered);
  ASSERT_TRUE(answer.ok()) << answer.error_message();

  Stream stream(*stub);
  v1::StageMessage message;
  message.mutable_hello()->set_stage_name(request.stage_name());
  message.mutable_hello()->set_incarnation(request.incarnation());
  ASSERT_TRUE(stream.stream->Write(message));
  message.mutable_heartbeat();
  while (stream.stream->Write(message)) {
  }
  // Its place is free though it takes not even the end.
  AwaitEndOfEmptyStream(grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(stream.End().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace penstock::coordinator::service
