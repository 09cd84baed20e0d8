// Messages of known length over a socket without blocking: read in as many
// pieces as they come and never a byte more, or written in one.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/transport/tcp/socket.h"

namespace penstock::server::transport::tcp {

// Reads into `bytes` from `have` on and advances it: whole when it has reached
// the size. OK with less: no more has come yet; again when the socket is
// readable. Unavailable when the peer has closed or the connection broke.
absl::Status ReadExactly(const Fd& socket, absl::Span<std::byte> bytes,
                         size_t& have);

// Writes all of it at once; a handshake always fits into a fresh socket.
// Unavailable when it does not or the connection broke.
absl::Status WriteAtOnce(const Fd& socket, absl::Span<const std::byte> bytes);

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_EXACT_READ_H_
