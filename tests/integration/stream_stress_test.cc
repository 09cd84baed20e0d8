// Streams of a real gRPC server whose clients leave at any moment, and a server
// that ends before its clients do: no crash, no hang, and TSan clean.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_settings.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"
#include "server/service/monitor_service.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::service {
namespace {

using ::testing::AnyOf;

constexpr int kClients = 4;
constexpr int kRounds = 60;
#if PENSTOCK_TSAN
// A call that is cancelled before the server has read its request is answered
// by a reactor of gRPC's own, which it hands over out of TSan's sight.
constexpr int kFewestReads = 1;
#else
constexpr int kFewestReads = 0;
#endif
// More than gRPC's window of a stream: a few of them fill it.
constexpr int kLargeStatusBytes = 60000;

class StreamStressTest : public ::testing::Test {
 protected:
  void Start(int status_bytes) {
    auto started = MonitorServer::Start(
        {.address = *common::rpc::ParseAddress(
             absl::StrCat("unix:", dir_.Path("monitor.sock"))),
         .status =
             [this, status_bytes] {
               v1::StageStatus status;
               status.set_current_command(std::string(status_bytes, 'x'));
               status.set_applied_step(++step_);
               return status;
             }},
        clock_);
    ASSERT_OK(started.status());
    server_ = *std::move(started);
  }
  std::unique_ptr<v1::StageMonitorService::Stub> Dial() const {
    return v1::StageMonitorService::NewStub(common::rpc::CreateChannel(
        server_->address(), common::rpc::ChannelUse::kSession));
  }

  common::time::RealClock clock_;
  tests::fakes::TempDir dir_;
  std::atomic<int64_t> step_{0};
  std::unique_ptr<MonitorServer> server_;
};

TEST_F(StreamStressTest, ReadersMayLeaveAtAnyMoment) {
  Start(100);
  std::atomic<bool> ending{false};
  std::thread publisher([&] {
    while (!ending) server_->Publish();
  });
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([this, client] {
      std::minstd_rand random(client);
      for (int round = 0; round < kRounds; ++round) {
        const auto stub = Dial();
        grpc::ClientContext context;
        const auto reader = stub->WatchStage(&context, {});
        v1::StageStatus status;
        for (int reads = kFewestReads + random() % 4; reads > 0; --reads) {
          ASSERT_TRUE(reader->Read(&status)) << client << " " << round;
          EXPECT_GT(status.applied_step(), 0);
        }
        context.TryCancel();
        EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  ending = true;
  publisher.join();
  server_.reset();
}

TEST_F(StreamStressTest, AnOlderStatusNeverFollowsANewerOne) {
  common::sync::Notification looking;
  common::sync::Notification go;
  auto started = MonitorServer::Start(
      {.address = *common::rpc::ParseAddress(
           absl::StrCat("unix:", dir_.Path("monitor.sock"))),
       .status =
           [&] {
             v1::StageStatus status;
             status.set_applied_step(++step_);
             if (status.applied_step() == 1) {  // Held up with what it saw.
               looking.Notify();
               go.WaitForNotification();
             }
             return status;
           }},
      clock_);
  ASSERT_OK(started.status());
  server_ = *std::move(started);
  std::thread publisher([&] { server_->Publish(); });
  looking.WaitForNotification();
  const auto stub = Dial();
  grpc::ClientContext context;
  const auto reader = stub->WatchStage(&context, {});
  v1::StageStatus status;
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_EQ(status.applied_step(), 2);
  go.Notify();
  publisher.join();
  server_->Publish();
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_EQ(status.applied_step(), 3);
  context.TryCancel();
  reader->Finish();
  server_.reset();
}

TEST_F(StreamStressTest, AServerEndsThoughItsReadersTakeNothing) {
  Start(kLargeStatusBytes);
  struct Reader {
    grpc::ClientContext context;
    std::unique_ptr<v1::StageMonitorService::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::StageStatus>> stream;
  };
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < kClients; ++i) {
    auto reader = std::make_unique<Reader>();
    reader->stub = Dial();
    reader->stream = reader->stub->WatchStage(&reader->context, {});
    v1::StageStatus first;
    ASSERT_TRUE(reader->stream->Read(&first));
    readers.push_back(std::move(reader));
  }
  for (int i = 0; i < 200; ++i) server_->Publish();
  const absl::Time begin = absl::Now();
  server_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  for (const auto& reader : readers) {
    v1::StageStatus status;
    while (reader->stream->Read(&status)) {
    }
    EXPECT_THAT(
        reader->stream->Finish().error_code(),
        AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED));
  }
}

}  // namespace
}  // namespace penstock::server::service
