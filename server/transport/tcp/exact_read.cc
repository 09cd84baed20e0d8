#include "server/transport/tcp/exact_read.h"

#include <sys/socket.h>

#include <cerrno>

namespace penstock::server::transport::tcp {

absl::Status ReadExactly(const Fd& socket, absl::Span<std::byte> bytes,
                         size_t& have) {
  while (have < bytes.size()) {
    const ssize_t got = recv(socket.get(), bytes.data() + have,
                             bytes.size() - have, MSG_DONTWAIT);
    if (got > 0) {
      have += static_cast<size_t>(got);
    } else if (got == 0) {
      return absl::UnavailableError("closed the connection in the handshake");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return SocketError("handshake", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteAtOnce(const Fd& socket, absl::Span<const std::byte> bytes) {
  const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(),
                            MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  if (sent < 0) return SocketError("handshake", errno);
  return absl::UnavailableError("handshake: the socket is full");
}

}  // namespace penstock::server::transport::tcp
