// The other end of an edge as bare blocking sockets, so that tests can say what
// no correct peer says. Everything has a time-out; failures are CHECKs.
#ifndef PENSTOCK_TESTS_SERVER_TRANSPORT_TCP_RAW_PEER_H_
#define PENSTOCK_TESTS_SERVER_TRANSPORT_TCP_RAW_PEER_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"
#include "server/transport/tcp/frame.h"
#include "server/transport/tcp/handshake.h"
#include "server/transport/tcp/socket.h"
#include "server/transport/transport.h"

namespace penstock::testing {

// A connected blocking socket. Thread-compatible.
class RawSocket {
 public:
  explicit RawSocket(server::transport::tcp::Fd fd);

  // Connects to "127.0.0.1:4711".
  static RawSocket Dial(const std::string& address);

  // False when the other side has closed or reset, or took too long.
  bool Write(absl::Span<const std::byte> bytes);
  bool Read(absl::Span<std::byte> bytes);
  bool WriteFrame(const server::transport::tcp::Frame& frame);
  // True once the other side has closed; reads and drops what comes before.
  bool WaitForClose();
  // Closes with a reset: nothing is left in TIME_WAIT.
  void Reset();

 private:
  server::transport::tcp::Fd fd_;
};

// The dialling side of a handshake; false when the listener refuses.
bool ProveAsDialler(RawSocket& socket, const server::transport::Edge& edge,
                    int64_t epoch, const std::string& secret);

// A listening socket that takes the peer's dialler and proves the secret.
class RawListener {
 public:
  RawListener();
  const std::string& address() const { return address_; }
  RawSocket Accept();
  // The listening side of a handshake.
  static bool ProveAsListener(RawSocket& socket, const std::string& secret);

 private:
  server::transport::tcp::Fd fd_;
  std::string address_;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_TRANSPORT_TCP_RAW_PEER_H_
