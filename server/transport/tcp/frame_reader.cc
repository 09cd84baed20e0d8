#include "server/transport/tcp/frame_reader.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace penstock::server::transport::tcp {

ByteParts FrameReader::Space(size_t budget) {
  ByteParts parts;
  offered_ = 0;
  if (in_payload_) {
    const size_t size = std::min(payload_.size(), budget);
    parts.Add(payload_.data(), size);
    if (size == payload_.size()) parts.Add(header_.data(), kFrameBytes);
    return parts;
  }
  parts.Add(header_.data() + have_, kFrameBytes - have_);
  const absl::Span<std::byte> slot = protocol_.Slot();
  offered_ = std::min(slot.size(), budget);
  parts.Add(slot.data(), offered_);
  if (offered_ == slot.size()) parts.Add(spare_.data(), kFrameBytes);
  return parts;
}

absl::Status FrameReader::Came(size_t count) {
  if (in_payload_) {
    const size_t size = std::min(count, payload_.size());
    payload_.remove_prefix(size);
    if (!payload_.empty()) return absl::OkStatus();
    in_payload_ = false;
    protocol_.OnPayload();
    have_ = count - size;
    return have_ < kFrameBytes ? absl::OkStatus() : OnHeader(0);
  }
  const size_t size = std::min(count, kFrameBytes - have_);
  have_ += size;
  return have_ < kFrameBytes ? absl::OkStatus() : OnHeader(count - size);
}

absl::Status FrameReader::OnHeader(size_t count) {
  have_ = 0;
  ASSIGN_OR_RETURN(const Frame frame, DecodeFrame(header_));
  ASSIGN_OR_RETURN(const absl::Span<std::byte> payload,
                   protocol_.OnFrame(frame));
  const size_t in_slot = std::min(count, offered_);
  if (frame.type != FrameType::kMessage) {
    if (in_slot > 0) {
      return absl::DataLossError("sent bytes after its goodbye");
    }
    return TakeSpare(count);
  }
  // OnFrame accepts only a payload of exactly the slot's size.
  payload_ = payload.subspan(in_slot);
  if (!payload_.empty()) {
    in_payload_ = true;
    return absl::OkStatus();
  }
  protocol_.OnPayload();
  return TakeSpare(count - in_slot);
}

absl::Status FrameReader::TakeSpare(size_t count) {
  std::copy_n(spare_.begin(), count, header_.begin());
  have_ = count;
  offered_ = 0;  // Nothing more has come.
  return have_ < kFrameBytes ? absl::OkStatus() : OnHeader(0);
}

}  // namespace penstock::server::transport::tcp
