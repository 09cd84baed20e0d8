// Calls whose work is slow: who waits for it, and for how many.
#include "coordinator/service/queued_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/admission.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "common/sync/mutex.h"
#include "common/sync/serial_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/plan_service.grpc.pb.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(60);

// Works until it is told to go on.
class SlowPlans final : public v1::PlanService::CallbackService {
 public:
  SlowPlans(int limit, common::rpc::ReactorRegistry& reactors)
      : admission_("slow calls", limit, "be patient"), reactors_(reactors) {}

  common::sync::Notification begun;
  common::sync::Notification go_on;
  std::atomic<int> works{0};

 private:
  grpc::ServerUnaryReactor* SimulateSchedule(
      grpc::CallbackServerContext*, const v1::SimulateScheduleRequest* request,
      v1::SimulateScheduleResponse* response) override {
    using Call =
        QueuedCall<v1::SimulateScheduleRequest, v1::SimulateScheduleResponse>;
    return Call::Begin(request, response, admission_, reactors_, queue_,
                       [this](const std::shared_ptr<Call>& call) {
                         if (++works == 1) begun.Notify();
                         go_on.WaitForNotificationWithTimeout(kLimit);
                         v1::SimulateScheduleResponse answer;
                         answer.set_csv(call->request().schedule());
                         call->Answer(answer);
                       });
  }

  common::rpc::Admission admission_;
  common::rpc::ReactorRegistry& reactors_;
  common::sync::SerialQueue queue_;
};

// A call that another thread makes.
class Caller {
 public:
  Caller(v1::PlanService::Stub& stub, const std::string& text)
      : thread_([this, &stub, text] {
          context_.set_deadline(absl::ToChronoTime(absl::Now() + 2 * kLimit));
          v1::SimulateScheduleRequest request;
          request.set_schedule(text);
          status_ = stub.SimulateSchedule(&context_, request, &answer_);
        }) {}
  ~Caller() {
    if (thread_.joinable()) thread_.join();
  }
  void Cancel() { context_.TryCancel(); }
  const grpc::Status& Join() {
    thread_.join();
    return status_;
  }
  const v1::SimulateScheduleResponse& answer() const { return answer_; }

 private:
  grpc::ClientContext context_;
  v1::SimulateScheduleResponse answer_;
  grpc::Status status_;
  std::thread thread_;
};

class QueuedCallTest : public ::testing::Test {
 protected:
  void Start(int limit) {
    plans_ = std::make_unique<SlowPlans>(limit, reactors_);
    auto started = common::rpc::RpcServer::Start(
        *common::rpc::ParseAddress(absl::StrCat("unix:", dir_.Path("a.sock"))),
        {plans_.get()}, reactors_);
    ASSERT_OK(started.status());
    server_ = *std::move(started);
    stub_ = v1::PlanService::NewStub(common::rpc::CreateChannel(
        server_->address(), common::rpc::ChannelUse::kShared));
  }
  void AwaitCalls(int count) {
    const absl::Time end = absl::Now() + kLimit;
    while (reactors_.size() != count) {
      ASSERT_LT(absl::Now(), end) << reactors_.size();
      std::this_thread::yield();
    }
  }

  tests::fakes::TempDir dir_;
  common::rpc::ReactorRegistry reactors_;
  std::unique_ptr<SlowPlans> plans_;
  std::unique_ptr<common::rpc::RpcServer> server_;
  std::unique_ptr<v1::PlanService::Stub> stub_;
};

TEST_F(QueuedCallTest, IsAnswered) {
  Start(2);
  plans_->go_on.Notify();
  Caller caller(*stub_, "words");
  const grpc::Status& status = caller.Join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(caller.answer().csv(), "words");
}

TEST_F(QueuedCallTest, AServerThatEndsDoesNotWaitForTheWork) {
  Start(2);
  Caller first(*stub_, "a");
  ASSERT_TRUE(plans_->begun.WaitForNotificationWithTimeout(kLimit));
  Caller second(*stub_, "b");
  AwaitCalls(2);
  const absl::Time before = absl::Now();
  server_.reset();
  EXPECT_LT(absl::Now() - before, kLimit / 2);
  for (Caller* caller : {&first, &second}) {
    const grpc::Status& status = caller->Join();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
  }
  plans_->go_on.Notify();
}

TEST_F(QueuedCallTest, WorkForACallerWhoHasGoneIsNotDone) {
  Start(3);
  Caller first(*stub_, "a");
  ASSERT_TRUE(plans_->begun.WaitForNotificationWithTimeout(kLimit));
  Caller second(*stub_, "b");
  AwaitCalls(2);
  second.Cancel();
  EXPECT_EQ(second.Join().error_code(), grpc::StatusCode::CANCELLED);
  AwaitCalls(1);
  Caller third(*stub_, "c");
  AwaitCalls(2);
  plans_->go_on.Notify();
  EXPECT_TRUE(first.Join().ok());
  EXPECT_TRUE(third.Join().ok());
  EXPECT_EQ(third.answer().csv(), "c");
  EXPECT_EQ(plans_->works, 2);
}

TEST_F(QueuedCallTest, OneTooManyIsAnswered) {
  Start(1);
  Caller first(*stub_, "a");
  ASSERT_TRUE(plans_->begun.WaitForNotificationWithTimeout(kLimit));
  Caller second(*stub_, "b");
  const grpc::Status& status = second.Join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("be patient"));
  // Work for a caller who has gone counts too.
  first.Cancel();
  first.Join();
  Caller third(*stub_, "c");
  EXPECT_EQ(third.Join().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  plans_->go_on.Notify();
}

}  // namespace
}  // namespace penstock::coordinator::service
