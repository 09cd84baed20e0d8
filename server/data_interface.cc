#include "server/data_interface.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/file/fd.h"

namespace penstock::server {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

// This end of a UDP socket that is connected to `to`: connecting one chooses a
// route and sends nothing. Empty, and errno, where there is none.
std::string LocalEnd(const addrinfo& to) {
  const common::file::Fd fd(socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  auto* const address = reinterpret_cast<sockaddr*>(&local);
  if (!fd.open() || connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0 ||
      getsockname(fd.get(), address, &length) != 0) {
    return "";
  }
  char host[NI_MAXHOST] = "";
  getnameinfo(address, length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

}  // namespace

absl::StatusOr<std::string> InterfaceTowards(
    const common::rpc::Address& coordinator) {
  if (coordinator.kind == common::rpc::AddressKind::kUnix) return "127.0.0.1";
  const auto fail = [&coordinator](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat(
        "which interface leads to the coordinator ", coordinator.ToString(),
        " cannot be found: ", why, "; say it with --data-interface"));
  };
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(coordinator.host.c_str(),
                  absl::StrCat(coordinator.port).c_str(), &wanted, &found);
  if (error != 0) return fail(gai_strerror(error));
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    std::string local = LocalEnd(*to);
    if (!local.empty()) return local;
  }
  return fail(std::generic_category().message(errno));
}

absl::Status CheckOneInterface(const std::string& address) {
  in6_addr v6;
  in_addr v4;
  const bool all = (inet_pton(AF_INET, address.c_str(), &v4) == 1 &&
                    v4.s_addr == INADDR_ANY) ||
                   (inet_pton(AF_INET6, address.c_str(), &v6) == 1 &&
                    IN6_IS_ADDR_UNSPECIFIED(&v6));
  if (!all) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--data-interface ", address,
      " is all interfaces; give the address at which other stages reach this "
      "one"));
}

}  // namespace penstock::server
