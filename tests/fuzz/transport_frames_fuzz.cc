// Bytes of a proved peer into both ends of an edge, without sockets. The first
// byte chooses the end and how many slots are posted (or messages waiting); the
// rest are frames, each followed by its payload. A byte 0xff in front of a
// frame's place makes its checksum right, so that the rules behind it are
// reached too. Nothing may crash, and every event must end up done.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/digest/crc32c.h"
#include "server/transport/tcp/frame.h"
#include "server/transport/tcp/little_endian.h"
#include "server/transport/tcp/protocol.h"

namespace {

namespace tcp = penstock::server::transport::tcp;
namespace device = penstock::server::device;

struct Item {
  std::vector<float> values = std::vector<float>(4);
  device::HostEvent done;
};

void Drive(tcp::Protocol& protocol, absl::Span<const uint8_t> bytes) {
  while (protocol.Next().has_value()) protocol.OnWritten();
  while (bytes.size() > tcp::kFrameBytes) {
    const bool fix = bytes[0] == 0xff;
    tcp::FrameBytes frame;
    std::transform(bytes.begin() + 1, bytes.begin() + 1 + tcp::kFrameBytes,
                   frame.begin(),
                   [](uint8_t byte) { return static_cast<std::byte>(byte); });
    bytes.remove_prefix(1 + tcp::kFrameBytes);
    if (fix) {
      tcp::Store(penstock::common::digest::Crc32c(
                     absl::MakeConstSpan(frame.data(), tcp::kFrameBytes - 4)),
                 frame.data() + tcp::kFrameBytes - 4);
    }
    const auto decoded = tcp::DecodeFrame(frame);
    if (!decoded.ok()) return;
    const auto slot = protocol.OnFrame(*decoded);
    if (!slot.ok()) return;
    if (decoded->type == tcp::FrameType::kMessage) {
      if (slot->size() != decoded->payload_bytes) std::abort();
      const size_t size = std::min(slot->size(), bytes.size());
      std::transform(bytes.begin(), bytes.begin() + size, slot->begin(),
                     [](uint8_t byte) { return static_cast<std::byte>(byte); });
      bytes.remove_prefix(size);
      if (size < slot->size()) return;
      protocol.OnPayload();
    }
    while (protocol.Next().has_value()) protocol.OnWritten();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::unique_ptr<tcp::Protocol> protocol;
  if (data[0] & 1) {
    protocol = std::make_unique<tcp::SourceProtocol>();
  } else {
    protocol = std::make_unique<tcp::TargetProtocol>();
  }
  std::vector<std::unique_ptr<Item>> items;
  for (int i = 0; i < (data[0] >> 1) % 8; ++i) {
    items.push_back(std::make_unique<Item>());
    auto operation = std::make_shared<penstock::server::transport::Operation>();
    operation->tag = {.epoch = 1, .step = i};
    operation->tensor = device::Tensor(items.back()->values.data(),
                                       device::DType::kF32, device::Shape({4}));
    operation->done = &items.back()->done;
    operation->ready = true;
    items.back()->done.Reset();
    protocol->Add(operation);
  }
  Drive(*protocol, absl::MakeConstSpan(data + 1, size - 1));
  protocol->FailAll(absl::CancelledError("end"));
  for (const auto& item : items) {
    if (!item->done.Done()) std::abort();
  }
  return 0;
}
