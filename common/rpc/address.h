// Where a gRPC server listens or is dialled: "unix:PATH" or "HOST:PORT".
#ifndef PENSTOCK_COMMON_RPC_ADDRESS_H_
#define PENSTOCK_COMMON_RPC_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::common::rpc {

// The kernel's limit of a Unix socket's path, without the terminating zero.
inline constexpr int kMaxUnixPathBytes = 107;

enum class AddressKind { kUnix, kTcp };

// Immutable value.
struct Address {
  AddressKind kind = AddressKind::kUnix;
  std::string path;  // kUnix
  std::string host;  // kTcp; without brackets for IPv6.
  int port = 0;      // kTcp; 0: the kernel chooses.

  // A Unix socket, "localhost", or a number; no name is looked up.
  bool loopback() const;
  // Whether each machine has one of its own that is called so: on loopback, or
  // of all its interfaces.
  bool machines_own() const;
  std::string ToString() const;  // As gRPC takes it.
};

// InvalidArgument naming what is wrong with `text`.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_ADDRESS_H_
