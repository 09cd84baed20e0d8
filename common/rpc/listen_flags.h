// The rule of --listen and --insecure-listen, the same for every daemon.
#ifndef PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_
#define PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"

namespace penstock::common::rpc {

struct ListenFlags {
  std::string listen;
  std::string insecure_listen;  // Empty: not given. Else it counts.
};

// InvalidArgument for a malformed address, and for one of --listen that is not
// on loopback: there is no TLS.
absl::StatusOr<Address> ParseListen(const ListenFlags& flags);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_
