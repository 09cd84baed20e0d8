#include "common/rpc/listen_flags.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::common::rpc {

absl::StatusOr<Address> ParseListen(const ListenFlags& flags) {
  if (!flags.insecure_listen.empty()) {
    return ParseAddress(flags.insecure_listen);
  }
  ASSIGN_OR_RETURN(Address address, ParseAddress(flags.listen));
  if (!address.loopback()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", flags.listen,
        " is not on loopback and there is no TLS; --insecure-listen ",
        flags.listen, " serves it in the clear"));
  }
  return address;
}

}  // namespace penstock::common::rpc
