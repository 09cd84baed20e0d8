// The dialling end of a handshake, whose process does not run for a while.
#include "server/transport/tcp/dialler.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/ids/random.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/tcp/epoch.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/socket.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/transport/tcp/raw_peer.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::RawListener;
using ::penstock::testing::RawSocket;

constexpr int64_t kEpoch = 7;
constexpr absl::Duration kAttempt = absl::Seconds(1);

// A handshake as far as the dialler's proof: only the welcome is missing.
bool TakeProof(RawSocket& socket, const std::string& secret) {
  HelloBytes hello;
  ProofBytes proof;
  return socket.Read(absl::MakeSpan(hello)) &&
         socket.Write(MakeChallenge(secret, hello, ListenerNonce{})) &&
         socket.Read(absl::MakeSpan(proof));
}

TEST(DiallerTest, AWelcomeThatCameWhileTheProcessStoodStillCounts) {
  const std::string secret(32, 's');
  RawListener peer;
  const common::time::RealClock clock;
  ASSERT_OK_AND_ASSIGN(const auto loop, EventLoop::Create());
  ASSERT_OK_AND_ASSIGN(
      const auto epoch,
      Epoch::Create({.epoch = kEpoch,
                     .secret = secret,
                     .edges = {{.edge = {0, 1, EdgeKind::kActivation},
                                .role = EdgeRole::kSource,
                                .capacity = 2,
                                .peer = "stage-1",
                                .peer_address = peer.address()}}},
                    *loop, clock));
  ASSERT_OK_AND_ASSIGN(const SocketAddress address,
                       ParseSocketAddress(peer.address()));
  common::sync::Notification connected;
  std::unique_ptr<Dialler> dialler;
  loop->RunAndWait([&] {
    dialler = std::make_unique<Dialler>(
        Dialler::Options{.connection = *epoch->connections()[0],
                         .epoch = kEpoch,
                         .secret = secret,
                         .address = address,
                         .attempt_timeout = kAttempt,
                         .on_connected = [&connected] { connected.Notify(); }},
        *loop, common::ids::SystemRandom());
  });
  // More than one where this machine is that slow.
  RawSocket socket = peer.Accept();
  while (!TakeProof(socket, secret)) socket = peer.Accept();
  common::sync::Notification stopped, welcomed, never;
  loop->Run([&] {
    stopped.Notify();
    welcomed.WaitForNotification();
    never.WaitForNotificationWithTimeout(kAttempt);
  });
  stopped.WaitForNotification();
  ASSERT_TRUE(socket.Write(absl::MakeConstSpan(&kWelcome, 1)));
  welcomed.Notify();
  EXPECT_TRUE(connected.WaitForNotificationWithTimeout(absl::Seconds(20)));
  loop->RunAndWait([&dialler] { dialler.reset(); });
  epoch->Abort(absl::CancelledError("the test is over"));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
