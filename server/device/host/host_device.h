// The device of which `reference`, `cpu` and `virtual` are settings: memory of
// the process, inline streams, and somebody's math.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_HOST_DEVICE_H_
#define PENSTOCK_SERVER_DEVICE_HOST_HOST_DEVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "server/device/device.h"
#include "server/device/host/host_memory.h"
#include "server/device/ops.h"

namespace penstock::server::device::host {

// Thread-safe; its ops are thread-compatible.
class HostDevice final : public Device {
 public:
  struct Options {
    std::string kind;
    std::string numerics_id;
    HostMemory memory;  // Of the ops, too, where they keep some.
    std::unique_ptr<Ops> ops;
    // Of streams whose events are InlineEvents; none: InlineStreams.
    std::function<std::unique_ptr<Stream>()> make_stream;
  };
  explicit HostDevice(Options options) : options_(std::move(options)) {}

  absl::string_view kind() const override { return options_.kind; }
  std::string numerics_id() const override { return options_.numerics_id; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes,
                                                   MemoryUse use) override;
  MemoryUsage memory() const override { return options_.memory.usage(); }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override;
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  void CopyToDevice(Stream& stream, std::byte* device, const std::byte* host,
                    int64_t bytes) override;
  void CopyToHost(Stream& stream, std::byte* host, const std::byte* device,
                  int64_t bytes) override;
  Ops& ops() override { return *options_.ops; }

 private:
  const Options options_;
};

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_HOST_DEVICE_H_
