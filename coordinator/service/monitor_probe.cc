#include "coordinator/service/monitor_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/file/fd.h"
#include "common/rpc/address.h"

namespace penstock::coordinator::service {
namespace {

constexpr int kTimeoutMs = 200;

// What a connect says that is given kTimeoutMs.
ProbeResult ResultOf(int fd, const sockaddr* name, socklen_t length) {
  int error = connect(fd, name, length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
    error = ETIMEDOUT;
    if (poll(&waiting, 1, kTimeoutMs) == 1) {
      socklen_t size = sizeof(error);
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return ProbeResult::kListening;
  return error == ECONNREFUSED || error == ENOENT ? ProbeResult::kRefused
                                                  : ProbeResult::kUnknown;
}

// Until nobody listens any more, or it is `until`.
ProbeResult Connect(int family, const sockaddr* name, socklen_t length,
                    const common::time::Clock& clock,
                    common::time::MonotonicTime until) {
  while (true) {
    const common::file::Fd fd(
        socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.open()) return ProbeResult::kUnknown;
    const ProbeResult result = ResultOf(fd.get(), name, length);
    const absl::Duration left = until - clock.Monotonic();
    if (result != ProbeResult::kListening || left <= absl::ZeroDuration()) {
      return result;
    }
    // A server that goes takes this connection with it.
    pollfd held{.fd = fd.get(), .events = POLLRDHUP, .revents = 0};
    const auto wait = static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
    if (poll(&held, 1, wait) != 1) return result;
  }
}

}  // namespace

ProbeResult Probe(const std::string& text, const common::time::Clock& clock,
                  common::time::MonotonicTime until) {
  const auto address = common::rpc::ParseAddress(text);
  if (!address.ok()) return ProbeResult::kUnknown;
  if (address->kind == common::rpc::AddressKind::kUnix) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address->path.data(), address->path.size());
    return Connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&name),
                   sizeof(name), clock, until);
  }
  std::vector<std::string> hosts = {address->host};
  if (address->host == "localhost") hosts = {"::1", "127.0.0.1"};
  ProbeResult result = ProbeResult::kUnknown;
  for (const std::string& host : hosts) {
    const addrinfo hints{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                         .ai_socktype = SOCK_STREAM};
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), absl::StrCat(address->port).c_str(), &hints,
                    &found) != 0) {
      return ProbeResult::kUnknown;
    }
    result = Connect(found->ai_family, found->ai_addr, found->ai_addrlen, clock,
                     until);
    freeaddrinfo(found);
    if (result == ProbeResult::kListening) break;
  }
  return result;
}

}  // namespace penstock::coordinator::service
