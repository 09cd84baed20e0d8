// The client against a server that is no coordinator, or one that hangs, below
// a folder whose name means something in a URI.
#include "client/coordinator_client.h"

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.grpc.pb.h"
#include "penstock/v1/job_service.grpc.pb.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

namespace rpc = common::rpc;
using ::penstock::testing::IsOk;
using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What gRPC answers for a server that ends meanwhile.
class EndingJobs final : public v1::JobService::CallbackService {
  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest*,
                                      v1::Job*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::CANCELLED);
    return reactor;
  }
};

// Notifies of a call that came, and never answers it.
class HangingCoordination final
    : public v1::CoordinationService::CallbackService {
 public:
  void AwaitCall() { came_.WaitForNotification(); }

 private:
  class Hanging final : public grpc::ServerUnaryReactor {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  grpc::ServerUnaryReactor* ReportStageExit(
      grpc::CallbackServerContext*, const v1::ReportStageExitRequest*,
      v1::ReportStageExitResponse*) override {
    came_.Notify();
    return new Hanging;
  }

  common::sync::Notification came_;
};

class CoordinatorClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_.Path("a%20b?c#d e"));
    address_ = {.kind = rpc::AddressKind::kUnix,
                .path = dir_.Path("a%20b?c#d e/s.sock")};
    auto server = rpc::RpcServer::Start(
        address_, {&monitor_, &jobs_, &coordination_}, reactors_);
    ASSERT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
    client_ = CoordinatorClient::Connect({.address = address_});
    ASSERT_THAT(client_->AwaitServing(absl::Seconds(60)), IsOk());
  }

  const tests::fakes::TempDir dir_;
  rpc::Address address_;
  v1::StageMonitorService::CallbackService monitor_;  // As a stage has it.
  EndingJobs jobs_;
  HangingCoordination coordination_;
  rpc::ReactorRegistry reactors_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<CoordinatorClient> client_;
};

TEST_F(CoordinatorClientTest, AServerOfAnotherKindIsNamed) {
  EXPECT_THAT(client_->ListStages(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(address_.ToString() +
                                 " answers, but not as a coordinator does")));
}

TEST_F(CoordinatorClientTest, ACallThatTheServerCancelsIsNotTheUsers) {
  EXPECT_THAT(client_->CreateJob({}),
              StatusIs(absl::StatusCode::kUnavailable,
                       address_.ToString() + " is shutting down"));
}

TEST_F(CoordinatorClientTest, CallsEndAtOnceWhenTheyAreGivenUp) {
  auto client =
      CoordinatorClient::Connect({.address = address_,
                                  .timeout = absl::Hours(1),  // Never.
                                  .computing = absl::Hours(1)});
  std::thread giving_up([this, &client] {
    coordination_.AwaitCall();
    client->CancelCalls();
  });
  EXPECT_THAT(client->ReportStageExit({}),
              StatusIs(absl::StatusCode::kCancelled, "the call was given up"));
  giving_up.join();
  EXPECT_THAT(client->CreateJob({}),
              StatusIs(absl::StatusCode::kCancelled, "the call was given up"));
}

TEST_F(CoordinatorClientTest, AnUnknownHealthServiceIsNamed) {
  EXPECT_THAT(client_->Health("liveness"), IsOkAndHolds("SERVING"));
  EXPECT_THAT(client_->Health("foo"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(address_.ToString()),
                             HasSubstr("no health service \"foo\""))));
}

}  // namespace
}  // namespace penstock::client
