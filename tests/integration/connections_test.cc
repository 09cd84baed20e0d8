// What a coordinator's connections cost and how long they last.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_settings.h"
#include "coordinator/coordinator.h"
#include "gtest/gtest.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "server/stage_daemon.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(120);

class ConnectionsTest : public ::testing::Test {
 protected:
  void StartCoordinator() {
    coordinator::Coordinator::Options options;
    options.listen = Socket("coordinator");
    options.state_directory = dir_.Path("state");
    options.embedded = true;
    auto started = coordinator::Coordinator::Start(options);
    ASSERT_OK(started.status());
    coordinator_ = *std::move(started);
  }
  common::rpc::Address Socket(const std::string& name) const {
    return *common::rpc::ParseAddress(
        absl::StrCat("unix:", dir_.Path(name), ".sock"));
  }

  tests::fakes::TempDir dir_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
};

int Threads() {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

// Both ends of a connection are in this process.
void AllowDescriptors(rlim_t wanted) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur >= wanted) return;
  ASSERT_GE(limit.rlim_max, wanted);
  limit.rlim_cur = wanted;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Each has a connection and a stream of its own, as stages have.
TEST_F(ConnectionsTest, FiveHundredClientsTakeNoThreads) {
  constexpr int kClients = 500;
  // gRPC's own grow with the machine.
  const int few =
      32 + 4 * static_cast<int>(std::thread::hardware_concurrency());
  AllowDescriptors(2 * kClients + 200);
  StartCoordinator();
  struct Client {
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>>
        stub;
    std::unique_ptr<
        grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>>
        stream;
    grpc::Status status;
  };
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Client>> clients;
  const auto all_done = [&] {
    for (int i = 0; i < kClients; ++i) {
      void* tag = nullptr;
      bool ok = false;
      if (queue.AsyncNext(&tag, &ok,
                          absl::ToChronoTime(absl::Now() + kLimit)) !=
          grpc::CompletionQueue::GOT_EVENT) {
        return false;
      }
    }
    return true;
  };
  const int before = Threads();
  for (int i = 0; i < kClients; ++i) {
    auto client = std::make_unique<Client>();
    client->stub = std::make_unique<
        grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>>(
        common::rpc::CreateChannel(coordinator_->address(),
                                   common::rpc::ChannelUse::kSession));
    client->stream = client->stub->PrepareCall(
        &client->context, "/penstock.v1.CoordinationService/StageSession",
        &queue);
    client->stream->StartCall(nullptr);
    clients.push_back(std::move(client));
  }
  ASSERT_TRUE(all_done()) << "calls start";
  EXPECT_LE(Threads(), before + few) << before << " without clients";

  // They are all served: each is told what it did wrong.
  for (const auto& client : clients) client->stream->WritesDone(nullptr);
  ASSERT_TRUE(all_done());
  for (const auto& client : clients) {
    client->stream->Finish(&client->status, nullptr);
  }
  ASSERT_TRUE(all_done());
  for (const auto& client : clients) {
    EXPECT_EQ(client->status.error_code(),
              grpc::StatusCode::FAILED_PRECONDITION)
        << client->status.error_message();
  }
  EXPECT_LE(Threads(), before + few);
}

// Both ends ping, and neither finds that the other does so too often: gRPC cuts
// a client off for that at its third ping, some 30 s on.
TEST_F(ConnectionsTest, NeitherIdleNorStreamingConnectionsAreCutOff) {
  constexpr absl::Duration kLong = absl::Seconds(60);
  StartCoordinator();
  std::atomic<bool> ended{false};
  server::StageDaemon::Options options;
  options.coordinator = coordinator_->address();
  options.listen = Socket("stage-0");
  options.data_address = "127.0.0.1";
  options.name = "stage-0";
  options.device = "reference";
  options.threads = 1;
  ASSERT_OK_AND_ASSIGN(
      auto stage,
      server::StageDaemon::Start(options, [&](const auto&) { ended = true; }));

  const auto dial = [](const common::rpc::Address& address) {
    auto channel =
        common::rpc::CreateChannel(address, common::rpc::ChannelUse::kSession);
    EXPECT_TRUE(
        channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kLimit)));
    return channel;
  };
  const auto idle = dial(coordinator_->address());
  const auto streaming = dial(Socket("stage-0"));
  const auto stub = v1::StageMonitorService::NewStub(streaming);
  grpc::ClientContext context;
  const auto reader = stub->WatchStage(&context, {});
  std::atomic<int> sessions_begun{0};
  std::thread reading([&] {
    v1::StageStatus status;
    bool connected = false;
    while (reader->Read(&status)) {
      if (!connected && status.coordinator_connected()) ++sessions_begun;
      connected = status.coordinator_connected();
    }
  });
  const auto end = absl::ToChronoTime(absl::Now() + kLong);
  EXPECT_FALSE(idle->WaitForStateChange(GRPC_CHANNEL_READY, end));
  EXPECT_FALSE(streaming->WaitForStateChange(GRPC_CHANNEL_READY, end));
  context.TryCancel();
  reading.join();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(sessions_begun, 1);
  EXPECT_FALSE(ended);
  stage.reset();
}

}  // namespace
}  // namespace penstock
