// Sockets as owned values, and addresses as people write them. Everything here
// is non-blocking and closed on exec.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_SOCKET_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/file/fd.h"

namespace penstock::server::transport::tcp {

using common::file::Fd;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// "127.0.0.1:4711" or "[::1]:4711". InvalidArgument for everything else: host
// names are not looked up, so that nothing here ever waits for a name server.
absl::StatusOr<SocketAddress> ParseSocketAddress(absl::string_view text);
std::string ToString(const SocketAddress& address);

// A bound, listening socket. Unavailable when the address is in use or not of
// this machine.
absl::StatusOr<Fd> Listen(const SocketAddress& address);
absl::StatusOr<SocketAddress> LocalAddress(const Fd& socket);
std::string PeerAddress(const Fd& socket);  // "?" when it is gone.

// Starts to connect; the socket becomes writable when that is decided, and
// ConnectResult() says how.
absl::StatusOr<Fd> StartConnect(const SocketAddress& address);
absl::Status ConnectResult(const Fd& socket);

struct LivenessOptions;  // listener_options.h
// Those, and TCP_NODELAY.
absl::Status SetDataOptions(const Fd& socket, const LivenessOptions& liveness);

// "Connection reset by peer" as a status: Unavailable. Says what to do where
// there are no descriptors left, which is no want of memory.
absl::Status SocketError(absl::string_view what, int error);

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_SOCKET_H_
