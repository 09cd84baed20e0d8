// The frames of an established data edge, to the byte: docs/wire_protocol.md.
// Pure: no sockets here.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

enum class FrameType : uint8_t {
  kMessage = 1,  // Source to target; the payload follows.
  kGrant = 2,    // Target to source.
  kGoodbye = 3,  // Both ways; the last frame.
};

// The fields that a type does not use are zero, on the wire too.
struct Frame {
  FrameType type = FrameType::kGoodbye;

  // kMessage.
  Tag tag;
  uint64_t payload_bytes = 0;
  uint64_t form_digest = 0;  // FormDigest of the tensor.
  uint32_t number = 0;       // Of this message on its edge, from 0, mod 2^32.

  // kGrant: both count from the start of the connection and never go back.
  uint64_t granted = 0;   // Messages that may be sent.
  uint64_t received = 0;  // Messages that have been received whole.

  friend bool operator==(const Frame&, const Frame&) = default;
};

inline constexpr size_t kFrameBytes = 48;
using FrameBytes = std::array<std::byte, kFrameBytes>;

FrameBytes EncodeFrame(const Frame& frame);

// DataLoss for a wrong checksum, an unknown type or a field that is not zero
// and should be.
absl::StatusOr<Frame> DecodeFrame(const FrameBytes& bytes);

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_H_
