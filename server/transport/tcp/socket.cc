#include "server/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "server/transport/tcp/listener_options.h"

namespace penstock::server::transport::tcp {
namespace {

const sockaddr* AsSockaddr(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

struct Option {
  int level;
  int number;
  absl::string_view name;
};
constexpr Option kReuseAddress{SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"};
constexpr Option kKeepAlive{SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE"};
constexpr Option kNoDelay{IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY"};
constexpr Option kKeepIdle{IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE"};
constexpr Option kKeepInterval{IPPROTO_TCP, TCP_KEEPINTVL, "TCP_KEEPINTVL"};
constexpr Option kKeepCount{IPPROTO_TCP, TCP_KEEPCNT, "TCP_KEEPCNT"};
constexpr Option kUserTimeout{IPPROTO_TCP, TCP_USER_TIMEOUT,
                              "TCP_USER_TIMEOUT"};

absl::Status SetOption(const Fd& socket, const Option& option, int value) {
  if (setsockopt(socket.get(), option.level, option.number, &value,
                 sizeof(value)) != 0) {
    return SocketError(absl::StrCat("setsockopt ", option.name, " ", value),
                       errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<Fd> NewSocket(const SocketAddress& address) {
  Fd fd(socket(address.storage.ss_family,
               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.open()) return SocketError("socket", errno);
  return fd;
}

}  // namespace

absl::Status SocketError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(
      what, ": ", std::generic_category().message(error),
      error == EMFILE ? "; raise the daemon's limit of descriptors (ulimit "
                        "-Hn, or LimitNOFILE of its service)"
      : error == ENFILE
          ? "; the machine has no descriptors left (sysctl fs.file-max)"
          : ""));
}

absl::StatusOr<SocketAddress> ParseSocketAddress(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no address of the form 127.0.0.1:4711 or ",
                   "[::1]:4711"));
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return wrong;
  }
  absl::string_view host = text.substr(0, colon);
  const bool v6 =
      absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  const std::string name(host);
  SocketAddress address;
  if (v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    if (inet_pton(AF_INET6, name.c_str(), &in6->sin6_addr) != 1) return wrong;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(*in6);
  } else {
    auto* in4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    if (inet_pton(AF_INET, name.c_str(), &in4->sin_addr) != 1) return wrong;
    in4->sin_family = AF_INET;
    in4->sin_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(*in4);
  }
  return address;
}

std::string ToString(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    return absl::StrCat("[", host, "]:", ntohs(in6->sin6_port));
  }
  const auto* in4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
  inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host));
  return absl::StrCat(host, ":", ntohs(in4->sin_port));
}

absl::StatusOr<Fd> Listen(const SocketAddress& address) {
  ASSIGN_OR_RETURN(Fd fd, NewSocket(address));
  // Only against TIME_WAIT: two listeners of one port still exclude each other.
  RETURN_IF_ERROR(SetOption(fd, kReuseAddress, 1));
  if (bind(fd.get(), AsSockaddr(address), address.length) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return SocketError(absl::StrCat("listen on ", ToString(address)), errno);
  }
  return fd;
}

absl::StatusOr<SocketAddress> LocalAddress(const Fd& socket) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage),
                  &address.length) != 0) {
    return SocketError("getsockname", errno);
  }
  return address;
}

std::string PeerAddress(const Fd& socket) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.storage),
                  &address.length) != 0) {
    return "?";
  }
  return ToString(address);
}

absl::StatusOr<Fd> StartConnect(const SocketAddress& address) {
  ASSIGN_OR_RETURN(Fd fd, NewSocket(address));
  if (connect(fd.get(), AsSockaddr(address), address.length) != 0 &&
      errno != EINPROGRESS) {
    return SocketError("connect", errno);
  }
  return fd;
}

absl::Status ConnectResult(const Fd& socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
    error = errno;
  }
  return error == 0 ? absl::OkStatus() : SocketError("connect", error);
}

absl::Status SetDataOptions(const Fd& socket, const LivenessOptions& liveness) {
  const auto seconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Seconds(duration));
  };
  RETURN_IF_ERROR(SetOption(socket, kNoDelay, 1));
  RETURN_IF_ERROR(SetOption(socket, kKeepAlive, 1));
  RETURN_IF_ERROR(SetOption(socket, kKeepIdle, seconds(liveness.probe_after)));
  RETURN_IF_ERROR(
      SetOption(socket, kKeepInterval, seconds(liveness.probe_interval)));
  RETURN_IF_ERROR(SetOption(socket, kKeepCount, liveness.probes));
  return SetOption(
      socket, kUserTimeout,
      static_cast<int>(absl::ToInt64Milliseconds(liveness.unacknowledged)));
}

}  // namespace penstock::server::transport::tcp
