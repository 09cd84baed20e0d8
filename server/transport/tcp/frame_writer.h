// Turns the frames of an edge's protocol into bytes to write, in whatever
// pieces they are taken. Knows no socket.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_WRITER_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_WRITER_H_

#include <cstddef>

#include "server/transport/tcp/byte_parts.h"
#include "server/transport/tcp/protocol.h"

namespace penstock::server::transport::tcp {

// Thread-compatible: its connection's lock guards it and the protocol.
class FrameWriter {
 public:
  explicit FrameWriter(Protocol& protocol) : protocol_(protocol) {}

  // Whether there is a frame to write, begun or new.
  bool Begin();
  // A frame has been begun and not written whole.
  bool midway() const { return midway_; }

  // What is left of the frame, but at most `budget` of its payload.
  // REQUIRES: Begin().
  ByteParts Left(size_t budget) const;
  // The first `count` bytes of it have been taken. Returns how many of them
  // were payload.
  size_t Wrote(size_t count);

 private:
  Protocol& protocol_;
  Outgoing frame_;  // Its payload: what is left of it.
  size_t header_written_ = 0;
  bool midway_ = false;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_FRAME_WRITER_H_
