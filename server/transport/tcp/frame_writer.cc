#include "server/transport/tcp/frame_writer.h"

#include <algorithm>
#include <optional>

namespace penstock::server::transport::tcp {

bool FrameWriter::Begin() {
  if (midway_) return true;
  std::optional<Outgoing> next = protocol_.Next();
  if (!next.has_value()) return false;
  frame_ = *next;
  header_written_ = 0;
  midway_ = true;
  return true;
}

ByteParts FrameWriter::Left(size_t budget) const {
  ByteParts parts;
  parts.Add(frame_.header.data() + header_written_,
            kFrameBytes - header_written_);
  parts.Add(frame_.payload.data(), std::min(frame_.payload.size(), budget));
  return parts;
}

size_t FrameWriter::Wrote(size_t count) {
  const size_t header = std::min(count, kFrameBytes - header_written_);
  header_written_ += header;
  const size_t payload = count - header;
  frame_.payload.remove_prefix(payload);
  if (header_written_ == kFrameBytes && frame_.payload.empty()) {
    midway_ = false;
    protocol_.OnWritten();
  }
  return payload;
}

}  // namespace penstock::server::transport::tcp
