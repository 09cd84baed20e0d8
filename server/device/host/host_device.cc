#include "server/device/host/host_device.h"

#include <cstring>

#include "server/device/host/inline_stream.h"

namespace penstock::server::device::host {
namespace {

void CopyInline(Stream& stream, std::byte* to, const std::byte* from,
                int64_t bytes) {
  if (stream.status().ok() && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Buffer>> HostDevice::Allocate(int64_t bytes,
                                                             MemoryUse use) {
  return options_.memory.Allocate(bytes, use);
}

absl::StatusOr<std::unique_ptr<Stream>> HostDevice::CreateStream() {
  if (options_.make_stream) return options_.make_stream();
  return std::make_unique<InlineStream>();
}

absl::StatusOr<std::unique_ptr<Event>> HostDevice::CreateEvent() {
  return std::make_unique<InlineEvent>();
}

void HostDevice::CopyToDevice(Stream& stream, std::byte* device,
                              const std::byte* host, int64_t bytes) {
  CopyInline(stream, device, host, bytes);
}

void HostDevice::CopyToHost(Stream& stream, std::byte* host,
                            const std::byte* device, int64_t bytes) {
  CopyInline(stream, host, device, bytes);
}

}  // namespace penstock::server::device::host
