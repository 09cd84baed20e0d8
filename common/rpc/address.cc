#include "common/rpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::common::rpc {

bool Address::loopback() const {
  if (kind == AddressKind::kUnix || host == "localhost") return true;
  // A name may begin with 127, too.
  in_addr v4;
  in6_addr v6;
  return (inet_pton(AF_INET, host.c_str(), &v4) == 1 &&
          ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET) ||
         (inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
          IN6_IS_ADDR_LOOPBACK(&v6));
}

bool Address::machines_own() const {
  return loopback() || host == "0.0.0.0" || host == "::";
}

std::string Address::ToString() const {
  if (kind == AddressKind::kUnix) return absl::StrCat("unix:", path);
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const auto invalid = [text](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address '", text, "': ", why, " (expected unix:PATH or HOST:PORT)"));
  };
  Address address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (rest.empty()) return invalid("the path is empty");
    if (rest.size() > kMaxUnixPathBytes) {
      return invalid(absl::StrCat("the path has ", rest.size(),
                                  " bytes, the kernel takes at most ",
                                  kMaxUnixPathBytes));
    }
    address.kind = AddressKind::kUnix;
    address.path = std::string(rest);
    return address;
  }
  address.kind = AddressKind::kTcp;
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return invalid("there is no port");
  absl::string_view host = text.substr(0, colon);
  if (absl::StartsWith(host, "[")) {
    if (!absl::EndsWith(host, "]")) return invalid("unbalanced brackets");
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ':')) {
    return invalid("an IPv6 host stands in brackets");
  }
  if (host.empty()) return invalid("the host is empty");
  address.host = std::string(host);
  if (!absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return invalid("the port is no number from 0 to 65535");
  }
  return address;
}

}  // namespace penstock::common::rpc
