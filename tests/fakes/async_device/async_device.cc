#include "tests/fakes/async_device/async_device.h"

#include <atomic>
#include <cstring>

#include "common/log/log.h"
#include "tests/fakes/async_device/async_ops.h"
#include "tests/fakes/async_device/async_stream.h"

namespace penstock::tests::fakes {
using namespace server::device;  // NOLINT: a device in every line.

namespace {

// Thread-safe; streams must be gone before it is.
class AsyncDevice final : public Device {
 public:
  AsyncDevice(const AsyncDeviceOptions& options,
              std::unique_ptr<Device> wrapped,
              std::unique_ptr<Stream> inline_stream)
      : options_(options),
        wrapped_(std::move(wrapped)),
        inline_stream_(std::move(inline_stream)),
        ops_(wrapped_->ops(), *inline_stream_) {}

  absl::string_view kind() const override { return "async"; }
  std::string numerics_id() const override { return wrapped_->numerics_id(); }

  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes,
                                                   MemoryUse use) override {
    return wrapped_->Allocate(bytes, use);
  }
  MemoryUsage memory() const override { return wrapped_->memory(); }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override {
    return std::make_unique<AsyncStream>(options_,
                                         options_.seed * 1000 + streams_++);
  }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    std::function<bool(int)> drops_await;
    if (options_.drops_await) {
      drops_await = [this, event = events_++](int await) {
        return options_.drops_await(event, await);
      };
    }
    return std::make_unique<AsyncEvent>(std::move(drops_await));
  }
  void CopyToDevice(Stream& stream, std::byte* device, const std::byte* host,
                    int64_t bytes) override {
    Copy(stream, device, host, bytes);
  }
  void CopyToHost(Stream& stream, std::byte* host, const std::byte* device,
                  int64_t bytes) override {
    Copy(stream, host, device, bytes);
  }
  Ops& ops() override { return ops_; }

 private:
  static void Copy(Stream& stream, std::byte* to, const std::byte* from,
                   int64_t bytes) {
    if (bytes == 0) return;
    dynamic_cast<AsyncStream&>(stream).Enqueue(
        [to, from, bytes] { std::memcpy(to, from, bytes); });
  }

  const AsyncDeviceOptions options_;
  const std::unique_ptr<Device> wrapped_;
  const std::unique_ptr<Stream> inline_stream_;
  AsyncOps ops_;
  std::atomic<uint32_t> streams_{0};
  std::atomic<int> events_{0};
};

}  // namespace

std::unique_ptr<Device> CreateAsyncDevice(const AsyncDeviceOptions& options,
                                          std::unique_ptr<Device> wrapped) {
  auto inline_stream = wrapped->CreateStream();
  CHECK_OK(inline_stream.status());
  return std::make_unique<AsyncDevice>(options, std::move(wrapped),
                                       *std::move(inline_stream));
}

}  // namespace penstock::tests::fakes
