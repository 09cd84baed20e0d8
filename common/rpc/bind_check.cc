#include "common/rpc/bind_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/unix_socket.h"

namespace penstock::common::rpc {
namespace {

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

// 0, or the error of the call that failed.
int BindAndListen(int family, const sockaddr* name, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const absl::Cleanup closing = [fd] { close(fd); };
  const int reuse = 1;  // As gRPC: not refused for connections that have ended.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  if (bind(fd, name, length) != 0) return errno;
  return listen(fd, 1) == 0 ? 0 : errno;
}

absl::Status TryListenTcp(const Address& address) {
  const addrinfo hints{.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                       .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                  &hints, &found);
  if (resolved != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address.ToString(), ": ", gai_strerror(resolved)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found,
                                                            freeaddrinfo);
  std::vector<int> errors;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    errors.push_back(
        BindAndListen(each->ai_family, each->ai_addr, each->ai_addrlen));
  }
  const int error = ListenVerdict(errors);
  return error == 0 ? absl::OkStatus() : ListenError(address, error);
}

}  // namespace

absl::Status ListenError(const Address& address, int error) {
  const std::string message =
      absl::StrCat("cannot listen on ", address.ToString(), ": ",
                   std::generic_category().message(error));
  return error == EADDRINUSE ? absl::AlreadyExistsError(message)
                             : absl::UnavailableError(message);
}

absl::Status CheckUnixSocketFree(const Address& address) {
  if (address.kind != AddressKind::kUnix) return absl::OkStatus();
  struct stat info;
  if (lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(address.ToString(), ": the file exists and is no socket"));
  }
  const sockaddr_un name = UnixName(address.path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ListenError(address, errno);
  const absl::Cleanup closing = [fd] { close(fd); };
  const int error =
      connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0
          ? 0
          : errno;
  switch (error) {
    case ECONNREFUSED:  // Of a server that is dead,
    case ENOENT:        // or has just removed it.
      return absl::OkStatus();
    case 0:
    case EAGAIN:  // It has more callers than it takes.
      return absl::AlreadyExistsError(absl::StrCat(
          "address in use: another server answers on ", address.ToString()));
    default:
      return absl::UnavailableError(absl::StrCat(
          "cannot tell whether another server listens on ", address.ToString(),
          ": ", std::generic_category().message(error),
          "; remove the file where none does"));
  }
}

absl::Status TryListen(const Address& address) {
  if (address.kind == AddressKind::kUnix) {
    const std::string path = UnpublishedPath(address.path);
    const sockaddr_un name = UnixName(path);
    const int error = BindAndListen(
        AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    if (error == 0) unlink(path.c_str());
    return error == 0 ? absl::OkStatus() : ListenError(address, error);
  }
  absl::Status tried = TryListenTcp(address);
  if (absl::IsUnavailable(tried) && address.host == "::") {
    Address ipv4 = address;
    ipv4.host = "0.0.0.0";
    tried = TryListenTcp(ipv4);
  }
  return tried;
}

int ListenVerdict(absl::Span<const int> errors) {
  const auto has = [errors](int error) {
    return std::find(errors.begin(), errors.end(), error) != errors.end();
  };
  if (has(EADDRINUSE)) return EADDRINUSE;
  return has(0) ? 0 : errors.front();
}

}  // namespace penstock::common::rpc
