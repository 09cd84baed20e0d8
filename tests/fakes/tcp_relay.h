// What is between a client and a server that lose sight of each other.
#ifndef PENSTOCK_TESTS_FAKES_TCP_RELAY_H_
#define PENSTOCK_TESTS_FAKES_TCP_RELAY_H_

#include <array>
#include <cstdint>
#include <thread>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace penstock::tests::fakes {

// Forwards the bytes of one connection both ways until it goes silent, as when
// a cable is pulled: both connections stay open, what comes is taken and goes
// nowhere. On 127.0.0.1. Thread-safe.
class TcpRelay {
 public:
  enum End { kClient = 0, kServer = 1 };

  // Listens on a port of the kernel's choice; connects to `server_port` when
  // somebody connects there.
  explicit TcpRelay(int server_port);
  ~TcpRelay();

  int port() const { return port_; }

  // Forwards nothing any more, not even that an end closes its connection.
  void GoSilent();

  // Whether `bytes` more come from that end within `limit`.
  bool AwaitBytes(End end, int64_t bytes, absl::Duration limit);
  // Whether that end closes its connection within `limit`.
  bool AwaitClosed(End end, absl::Duration limit);
  bool closed(End end) const;

 private:
  void Run();
  void Connect();
  // Takes what has come from `end`.
  void Take(End end);

  // Constant after construction.
  const int server_port_;
  int port_ = 0;
  int listener_ = -1;
  int wake_ = -1;  // An eventfd: the relay ends.

  // Confined to the thread.
  std::array<int, 2> sockets_ = {-1, -1};  // By End.

  mutable common::sync::Mutex mutex_;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<int64_t, 2> bytes_ ABSL_GUARDED_BY(mutex_) = {0, 0};
  std::array<bool, 2> closed_ ABSL_GUARDED_BY(mutex_) = {false, false};

  std::thread thread_;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_TCP_RELAY_H_
