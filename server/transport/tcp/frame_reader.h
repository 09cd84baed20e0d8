// Cuts the bytes of an edge, in whatever pieces they come, into frames and
// payloads for its protocol. Payloads go straight to their slots: where a
// message may come, its slot is offered behind its header, and the start of
// the next header behind that, so that a small message costs one read. Knows
// no socket.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_READER_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_READER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/transport/tcp/byte_parts.h"
#include "server/transport/tcp/frame.h"
#include "server/transport/tcp/protocol.h"

namespace penstock::server::transport::tcp {

// Thread-compatible: its connection's lock guards it and the protocol.
class FrameReader {
 public:
  explicit FrameReader(Protocol& protocol) : protocol_(protocol) {}

  // Where the next bytes go: at most `budget` of a payload, never nothing.
  ByteParts Space(size_t budget);

  // The first `count` bytes of the last Space() are there. Errors as
  // Protocol::OnFrame, and DataLoss for bytes that belong to nothing.
  absl::Status Came(size_t count);

  // Of the payload that has begun, the bytes that have not come; 0: none has.
  size_t missing() const { return in_payload_ ? payload_.size() : 0; }

 private:
  // header_ is complete; `count` bytes came behind it.
  absl::Status OnHeader(size_t count);
  // `count` bytes in spare_ are the start of the next header.
  absl::Status TakeSpare(size_t count);

  Protocol& protocol_;
  FrameBytes header_;
  size_t have_ = 0;  // Of header_.
  FrameBytes spare_;
  size_t offered_ = 0;  // Of the slot, behind the header.
  bool in_payload_ = false;
  absl::Span<std::byte> payload_;  // What is missing of it.
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_READER_H_
