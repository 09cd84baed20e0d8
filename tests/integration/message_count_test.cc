// How many messages a real stage and a real coordinator exchange over gRPC in
// steady state: two a step each way, whatever M is (docs/wire_protocol.md).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/ids/generated_ids.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/rpc/address.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/backends.h"
#include "server/service/grpc_coordinator_link.h"
#include "server/service/session_loop.h"
#include "server/service/stage_job_runner.h"
#include "server/transport/tcp/listener.h"
#include "tests/integration/rpc_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using server::service::CoordinatorLink;

constexpr char kDevice[] = "reference";
constexpr int kSteps = 24;
// Between these steps nothing begins or ends.
constexpr int kFirst = 5, kLast = 20;

// Counts what passes, but for heartbeats, evaluations and what opens a session:
// in a row of its own the numbers that had passed by when a step was over.
// Thread-safe.
class Counter {
 public:
  void Message() {
    common::sync::MutexLock lock(&mutex_);
    ++count_;
  }
  // The last message of a step, or that again.
  void StepOver(int64_t step) {
    common::sync::MutexLock lock(&mutex_);
    ++count_;
    if (step > static_cast<int64_t>(at_.size())) at_.push_back(count_);
  }
  std::vector<int> at() const {
    common::sync::MutexLock lock(&mutex_);
    return at_;
  }

 private:
  mutable common::sync::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> at_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe, as what it decorates.
class CountingLink final : public CoordinatorLink {
 public:
  explicit CountingLink(std::unique_ptr<CoordinatorLink> link)
      : link_(std::move(link)) {}

  void Register(const v1::RegisterStageRequest& request, absl::Duration timeout,
                Registered done) override {
    link_->Register(request, timeout, std::move(done));
  }
  void OpenStream(const v1::StageMessage& hello, Listener listener) override {
    auto on_message = std::move(listener.on_message);
    listener.on_message = [this, on_message = std::move(on_message)](
                              v1::CoordinatorMessage message) {
      if (message.has_release()) {
        received.StepOver(message.release().step());
      } else if (!message.has_heartbeat_ack() && !message.has_welcome() &&
                 message.commands().kind() != v1::StepCommands::KIND_EVALUATE) {
        received.Message();
      }
      on_message(std::move(message));
    };
    link_->OpenStream(hello, std::move(listener));
  }
  void Send(v1::StageMessage message) override {
    if (message.has_apply_ack()) {
      sent.StepOver(message.apply_ack().step());
    } else if (!message.has_heartbeat() && !message.has_eval_report()) {
      sent.Message();
    }
    link_->Send(std::move(message));
  }
  void CloseStream() override { link_->CloseStream(); }
  void CancelStream() override { link_->CancelStream(); }

  Counter sent, received;

 private:
  const std::unique_ptr<CoordinatorLink> link_;
};

// The stage daemon's parts, as server/stage_daemon.cc puts them together,
// around a link that counts. Confined to the test's thread.
class CountedStage {
 public:
  CountedStage(const std::string& name, const common::rpc::Address& coordinator)
      : link_(server::service::MakeGrpcCoordinatorLink(coordinator)) {
    auto listener = server::transport::tcp::Listener::Open(
        {.address = "127.0.0.1:0"}, clock_, random_);
    CHECK_OK(listener.status());
    listener_ = *std::move(listener);
    resources_.stage_name = name;
    resources_.make_device = [](const std::string& numerics_id, int) {
      return server::CreateDevice(
          {.kind = kDevice, .numerics_id = numerics_id, .threads = 1});
    };
    resources_.clock = &clock_;
    resources_.make_transport =
        [this](const server::transport::TransportOptions& options) {
          return listener_->CreateTransport(options);
        };
    resources_.resident_bytes = [] { return int64_t{0}; };
    loop_ = std::make_unique<server::service::SessionLoop>(
        server::service::SessionLoop::Options{.registration = Registration()},
        clock_, link_, [](const server::service::SessionEnd&) {});
    runner_ = std::make_unique<server::service::StageJobRunner>(
        resources_, [this](int64_t epoch, v1::StageMessage message) {
          loop_->Report(epoch, std::move(message));
        });
    loop_->Start(*runner_);
  }
  ~CountedStage() {
    loop_->Join();
    runner_.reset();
  }

  const CountingLink& link() const { return link_; }

 private:
  v1::RegisterStageRequest Registration() const {
    v1::RegisterStageRequest request;
    request.set_stage_name(resources_.stage_name);
    request.set_incarnation(common::ids::MakeUuid(random_));
    request.mutable_device()->set_kind(kDevice);
    const auto ids = server::NumericsIds(kDevice, "");
    CHECK_OK(ids.status());
    for (const std::string& id : *ids) request.add_numerics_ids(id);
    request.mutable_protocol()->set_lowest(1);
    request.mutable_protocol()->set_highest(1);
    request.set_data_address(listener_->address());
    return request;
  }

  common::time::RealClock clock_;
  const common::ids::RandomSource random_ = common::ids::SystemRandom();
  CountingLink link_;
  std::unique_ptr<server::transport::tcp::Listener> listener_;
  server::service::StageResources resources_;
  std::unique_ptr<server::service::SessionLoop> loop_;
  std::unique_ptr<server::service::StageJobRunner> runner_;
};

// By M.
class MessageCountTest : public testing::RpcCluster,
                         public ::testing::WithParamInterface<int> {};

TEST_P(MessageCountTest, TwoAStepEachWayWhateverMIs) {
  StartCoordinator();
  std::vector<std::unique_ptr<CountedStage>> stages;
  for (const char* name : {"stage-0", "stage-1"}) {
    stages.push_back(
        std::make_unique<CountedStage>(name, coordinator_->address()));
  }

  ASSERT_OK_AND_ASSIGN(const v1::Job created,
                       client_->CreateJob(Request({.steps = kSteps,
                                                   .micro_batches = GetParam(),
                                                   .evaluate_every = 3})));
  std::vector<v1::JobEvent> events;
  const v1::Job job = Watch(created.id(), events);
  ASSERT_EQ(job.state(), v1::Job::STATE_SUCCEEDED) << job.DebugString();

  for (const auto& stage : stages) {
    const std::vector<int> sent = stage->link().sent.at();
    const std::vector<int> received = stage->link().received.at();
    ASSERT_EQ(sent.size(), kSteps);
    ASSERT_EQ(received.size(), kSteps);
    EXPECT_EQ(sent[kLast - 1] - sent[kFirst - 1], 2 * (kLast - kFirst));
    EXPECT_EQ(received[kLast - 1] - received[kFirst - 1], 2 * (kLast - kFirst));
  }
}

INSTANTIATE_TEST_SUITE_P(M, MessageCountTest, ::testing::Values(2, 8),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace penstock
