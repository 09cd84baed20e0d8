// Reads a message of known length from a non-blocking socket, in as many
// pieces as it comes, and never a byte more.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/transport/tcp/socket.h"

namespace penstock::server::transport::tcp {

// Reads into `bytes` from *have on and advances it: whole when it reaches the
// size. Unavailable when the peer has closed or the connection broke.
absl::Status ReadExactly(const Fd& socket, absl::Span<std::byte> bytes,
                         size_t& have);

// Writes all of it at once; a handshake always fits into a fresh socket.
// Unavailable when it does not or the connection broke.
absl::Status WriteAtOnce(const Fd& socket, absl::Span<const std::byte> bytes);

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_
