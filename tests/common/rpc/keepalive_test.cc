// What each end does when the other vanishes: no reset, no end of file, no
// answer. Its keepalive must find that, with calls and without.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "penstock/v1/stage_service.grpc.pb.h"
#include "tests/fakes/tcp_relay.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::rpc {
namespace {

using ::testing::HasSubstr;
using tests::fakes::TcpRelay;

constexpr absl::Duration kNever = absl::Hours(1);
// gRPC makes it a second at least for an idle client.
constexpr absl::Duration kPings = absl::Milliseconds(300);
constexpr absl::Duration kAnswer = absl::Seconds(1);
// An HTTP/2 PING.
constexpr int kPingBytes = 17;
// More than is needed, less than gRPC's own time-out, 20 s.
constexpr absl::Duration kLimit = absl::Seconds(15);

// A server, a client, and what is between them.
class Connection {
 public:
  explicit Connection(const Keepalive& keepalive) {
    auto started = RpcServer::Start(ParseAddress("127.0.0.1:0").value(),
                                    {&service_}, reactors_, keepalive);
    CHECK_OK(started.status());
    server_ = *std::move(started);
    relay_ = std::make_unique<TcpRelay>(server_->address().port);
    channel_ = CreateChannel(
        ParseAddress(absl::StrCat("127.0.0.1:", relay_->port())).value(),
        ChannelUse::kSession, keepalive);
    CHECK(channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + kLimit)));
  }

  TcpRelay& relay() { return *relay_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  v1::StageService::CallbackService service_;  // gRPC wants one; not called.
  ReactorRegistry reactors_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<TcpRelay> relay_;
  std::shared_ptr<grpc::Channel> channel_;
};

// A stream that says something once and then nothing.
class QuietStream {
 public:
  explicit QuietStream(const Connection& connection)
      : stub_(grpc::health::v1::Health::NewStub(connection.channel())) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + 2 * kLimit));
    reader_ = stub_->Watch(&context_, grpc::health::v1::HealthCheckRequest());
    grpc::health::v1::HealthCheckResponse response;
    CHECK(reader_->Read(&response));
  }
  ~QuietStream() {
    context_.TryCancel();
    if (!finished_) reader_->Finish();
  }
  // Blocks until it has ended.
  grpc::Status End() {
    grpc::health::v1::HealthCheckResponse response;
    while (reader_->Read(&response)) {
    }
    finished_ = true;
    return reader_->Finish();
  }

 private:
  const std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<grpc::health::v1::HealthCheckResponse>>
      reader_;
  bool finished_ = false;
};

Keepalive OfClient() {
  return {.client = kPings,
          .server = kNever,
          .timeout = kAnswer,
          .min_ping_interval = absl::Milliseconds(100)};
}
Keepalive OfServer() {
  return {.client = kNever,
          .server = kPings,
          .timeout = kAnswer,
          .min_ping_interval = absl::Milliseconds(100)};
}

TEST(KeepaliveTest, AClientsStreamEndsWhenTheServerVanishes) {
  Connection connection(OfClient());
  QuietStream stream(connection);
  const absl::Time before = absl::Now();
  connection.relay().GoSilent();
  const grpc::Status status = stream.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("keepalive"));
  EXPECT_LT(absl::Now() - before, kLimit);
}

TEST(KeepaliveTest, AnIdleClientGoesOnPingingAndFindsThatTheServerVanishes) {
  Connection connection(OfClient());
  { QuietStream settled(connection); }
  // The third without data is one that gRPC alone would not send, the fourth
  // one that the server alone would cut it off for. What else the client sends
  // now is less than five pings.
  ASSERT_TRUE(connection.relay().AwaitBytes(TcpRelay::kClient, 10 * kPingBytes,
                                            2 * kLimit));
  ASSERT_FALSE(connection.relay().closed(TcpRelay::kClient));
  ASSERT_FALSE(connection.relay().closed(TcpRelay::kServer));
  connection.relay().GoSilent();
  EXPECT_TRUE(connection.relay().AwaitClosed(TcpRelay::kClient, kLimit));
}

TEST(KeepaliveTest, AServerEndsTheStreamOfAClientThatVanishes) {
  Connection connection(OfServer());
  QuietStream stream(connection);
  connection.relay().GoSilent();
  EXPECT_TRUE(connection.relay().AwaitClosed(TcpRelay::kServer, kLimit));
}

TEST(KeepaliveTest, AServerEndsTheIdleConnectionOfAClientThatVanishes) {
  Connection connection(OfServer());
  ASSERT_TRUE(connection.relay().AwaitBytes(TcpRelay::kServer, 5 * kPingBytes,
                                            2 * kLimit));
  ASSERT_FALSE(connection.relay().closed(TcpRelay::kServer));
  connection.relay().GoSilent();
  EXPECT_TRUE(connection.relay().AwaitClosed(TcpRelay::kServer, kLimit));
}

}  // namespace
}  // namespace penstock::common::rpc
