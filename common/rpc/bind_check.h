// Whether a server may listen on an address, and if not why: gRPC tells neither
// to its caller.
#ifndef PENSTOCK_COMMON_RPC_BIND_CHECK_H_
#define PENSTOCK_COMMON_RPC_BIND_CHECK_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/rpc/address.h"

namespace penstock::common::rpc {

// "cannot listen on ADDRESS: ..." in the kernel's words for `error`, an errno:
// AlreadyExists for EADDRINUSE, else Unavailable.
absl::Status ListenError(const Address& address, int error);

// AlreadyExists where a living server answers on the Unix socket, or its path
// is something else than a socket; Unavailable with the kernel's word where
// neither can be told; OK where nobody does, and for TCP.
absl::Status CheckUnixSocketFree(const Address& address);

// Binds and listens for a moment: AlreadyExists where the address is in use,
// Unavailable with the kernel's or the resolver's word for any other cause.
// Both name the address. Of a Unix socket another name in its folder is bound:
// what is at its path stays. As gRPC does it: of a name that has several
// addresses those are left out that this machine has not, and "::" is 0.0.0.0
// where there is no IPv6.
absl::Status TryListen(const Address& address);

// How it went with an address, from how it went with each of those that it
// stands for, as errno says it: EADDRINUSE where one is in use, else 0 where it
// went well with one, else the first error. REQUIRES: there are some.
int ListenVerdict(absl::Span<const int> errors);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_BIND_CHECK_H_
