#include "common/rpc/grpc_target.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace penstock::common::rpc {

std::string GrpcTarget(const Address& address) {
  if (address.kind != AddressKind::kUnix) return address.ToString();
  std::string target = "unix:";
  for (const char c : address.path) {
    // RFC 3986, what a path consists of beside its slashes.
    if (absl::ascii_isalnum(c) || absl::StrContains("/-._~", c)) {
      target += c;
    } else {
      absl::StrAppendFormat(&target, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return target;
}

}  // namespace penstock::common::rpc
