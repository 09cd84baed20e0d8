#include "server/transport/tcp/frame.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/digest/crc32c.h"
#include "server/transport/tcp/little_endian.h"

namespace penstock::server::transport::tcp {
namespace {

// Where the fields are.
constexpr size_t kType = 0;  // u8, then three zero bytes
constexpr size_t kMicroBatch = 4;
constexpr size_t kEpoch = 8;
constexpr size_t kStep = 16;   // or granted
constexpr size_t kBytes = 24;  // or received
constexpr size_t kDigest = 32;
constexpr size_t kNumber = 40;
constexpr size_t kChecksum = 44;

uint32_t Checksum(const FrameBytes& bytes) {
  return common::digest::Crc32c(absl::MakeConstSpan(bytes.data(), kChecksum));
}

}  // namespace

FrameBytes EncodeFrame(const Frame& frame) {
  FrameBytes bytes{};
  std::byte* at = bytes.data();
  Store(static_cast<uint8_t>(frame.type), at + kType);
  if (frame.type == FrameType::kMessage) {
    Store(static_cast<uint32_t>(frame.tag.micro_batch), at + kMicroBatch);
    Store(static_cast<uint64_t>(frame.tag.epoch), at + kEpoch);
    Store(static_cast<uint64_t>(frame.tag.step), at + kStep);
    Store(frame.payload_bytes, at + kBytes);
    Store(frame.form_digest, at + kDigest);
    Store(frame.number, at + kNumber);
  } else if (frame.type == FrameType::kGrant) {
    Store(frame.granted, at + kStep);
    Store(frame.received, at + kBytes);
  }
  Store(Checksum(bytes), at + kChecksum);
  return bytes;
}

absl::StatusOr<Frame> DecodeFrame(const FrameBytes& bytes) {
  const std::byte* at = bytes.data();
  if (Load<uint32_t>(at + kChecksum) != Checksum(bytes)) {
    return absl::DataLossError("malformed frame: its checksum is wrong");
  }
  Frame frame;
  const uint8_t type = Load<uint8_t>(at + kType);
  switch (static_cast<FrameType>(type)) {
    case FrameType::kMessage:
      frame.type = FrameType::kMessage;
      frame.tag = {.epoch = static_cast<int64_t>(Load<uint64_t>(at + kEpoch)),
                   .step = static_cast<int64_t>(Load<uint64_t>(at + kStep)),
                   .micro_batch =
                       static_cast<int32_t>(Load<uint32_t>(at + kMicroBatch))};
      frame.payload_bytes = Load<uint64_t>(at + kBytes);
      frame.form_digest = Load<uint64_t>(at + kDigest);
      frame.number = Load<uint32_t>(at + kNumber);
      break;
    case FrameType::kGrant:
      frame.type = FrameType::kGrant;
      frame.granted = Load<uint64_t>(at + kStep);
      frame.received = Load<uint64_t>(at + kBytes);
      break;
    case FrameType::kGoodbye:
      frame.type = FrameType::kGoodbye;
      break;
    default:
      return absl::DataLossError(
          absl::StrCat("malformed frame: unknown type ", type));
  }
  if (EncodeFrame(frame) != bytes) {
    return absl::DataLossError(
        "malformed frame: a byte that should be zero is not");
  }
  return frame;
}

}  // namespace penstock::server::transport::tcp
