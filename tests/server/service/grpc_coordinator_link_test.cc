// The link to a coordinator that takes calls and then says nothing.
#include "server/service/grpc_coordinator_link.h"

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "common/sync/mutex.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.grpc.pb.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/service/recorded.h"

namespace penstock::server::service {
namespace {

using ::penstock::testing::Recorded;
using ::penstock::testing::StatusIs;

// Ends its call when the client does, and not before.
template <typename Base>
class Silent final : public Base {
 public:
  void OnCancel() override { this->Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

class SilentCoordinator final
    : public v1::CoordinationService::CallbackService {
 public:
  struct Call {};
  Recorded<Call> calls;

 private:
  using Session =
      grpc::ServerBidiReactor<v1::StageMessage, v1::CoordinatorMessage>;

  grpc::ServerUnaryReactor* RegisterStage(grpc::CallbackServerContext*,
                                          const v1::RegisterStageRequest*,
                                          v1::RegisterStageResponse*) override {
    auto* reactor = new Silent<grpc::ServerUnaryReactor>;
    calls.Put({});
    return reactor;
  }
  Session* StageSession(grpc::CallbackServerContext*) override {
    auto* reactor = new Silent<Session>;
    calls.Put({});
    return reactor;
  }
};

class GrpcCoordinatorLinkTest : public ::testing::Test {
 protected:
  GrpcCoordinatorLinkTest() {
    auto started = common::rpc::RpcServer::Start(
        *common::rpc::ParseAddress(absl::StrCat("unix:", dir_.Path("a.sock"))),
        {&coordinator_}, reactors_);
    CHECK_OK(started.status());
    server_ = *std::move(started);
    link_ = MakeGrpcCoordinatorLink(server_->address());
  }

  tests::fakes::TempDir dir_;
  SilentCoordinator coordinator_;
  common::rpc::ReactorRegistry reactors_;
  std::unique_ptr<common::rpc::RpcServer> server_;
  std::unique_ptr<CoordinatorLink> link_;
};

TEST_F(GrpcCoordinatorLinkTest, ARegistrationThatIsNotAnsweredEndsWithTheLink) {
  std::optional<absl::Status> answer;
  common::sync::Notification answered;
  // Less than what a test may last: an end by this deadline is seen.
  link_->Register({}, absl::Seconds(20), [&](const auto& response) {
    answer = response.status();
    answered.Notify();
  });
  ASSERT_TRUE(coordinator_.calls.Take().has_value());
  link_.reset();
  ASSERT_TRUE(answered.HasBeenNotified());
  EXPECT_THAT(*answer, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(GrpcCoordinatorLinkTest, AStreamOnWhichNothingComesCanBeCancelled) {
  Recorded<absl::Status> ends;
  link_->OpenStream(v1::StageMessage(),
                    {.on_message = [](const auto&) {},
                     .on_broken = [&](auto status) { ends.Put(status); }});
  ASSERT_TRUE(coordinator_.calls.Take().has_value());
  link_->CancelStream();
  const auto end = ends.Take();
  ASSERT_TRUE(end.has_value());
  EXPECT_THAT(*end, StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace penstock::server::service
