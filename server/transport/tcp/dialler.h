// Connects the sending end of an edge: dials the peer's listener, proves the
// secret both ways and hands the socket to the connection. It tries again,
// with growing pauses, until it succeeds or the connection has failed: the
// peer may open its epoch later.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_DIALLER_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_DIALLER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/ids/random.h"
#include "server/transport/tcp/connection.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/handshake.h"
#include "server/transport/tcp/listener_options.h"

namespace penstock::server::transport::tcp {

// Confined to the loop thread.
class Dialler {
 public:
  struct Options {
    Connection& connection;  // Must outlive the dialler.
    int64_t epoch = 0;
    std::string secret;
    SocketAddress address;
    LivenessOptions liveness;
    // Of one attempt, from dialling to the welcome.
    absl::Duration attempt_timeout = absl::Seconds(5);
    std::function<void()> on_connected;
  };

  Dialler(const Options& options, EventLoop& loop,
          const common::ids::RandomSource& random);

 private:
  void Dial();
  void OnEvents();
  void OnTimeout();
  // Moves on as far as the socket has bytes.
  absl::Status Step();
  // Gives this attempt up; nothing where the connection does not connect any
  // more.
  void TryAgain(const absl::Status& problem);

  const Options options_;
  EventLoop& loop_;
  const common::ids::RandomSource random_;

  // Of the current attempt. The watch goes before the socket that it watches.
  enum class Phase { kConnecting, kChallenge, kWelcome } phase_;
  Fd socket_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Timer> timer_;
  HelloBytes hello_;
  ChallengeBytes challenge_;
  size_t have_ = 0;
  absl::Duration pause_;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_DIALLER_H_
