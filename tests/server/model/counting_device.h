// A device that counts the bytes that are allocated through it.
#ifndef PENSTOCK_TESTS_SERVER_MODEL_COUNTING_DEVICE_H_
#define PENSTOCK_TESTS_SERVER_MODEL_COUNTING_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/device/device.h"

namespace penstock::testing {

// Thread-compatible.
class CountingDevice final : public server::device::Device {
 public:
  explicit CountingDevice(std::unique_ptr<Device> device)
      : device_(std::move(device)) {}

  // Since the last ResetCounts(); freeing does not count.
  int64_t device_bytes() const { return device_bytes_; }
  int64_t pinned_bytes() const { return pinned_bytes_; }
  void ResetCounts() { device_bytes_ = pinned_bytes_ = 0; }

  absl::string_view kind() const override { return device_->kind(); }
  std::string numerics_id() const override { return device_->numerics_id(); }
  absl::StatusOr<std::unique_ptr<server::device::Buffer>> Allocate(
      int64_t bytes, server::device::MemoryKind kind) override {
    (kind == server::device::MemoryKind::kDevice ? device_bytes_
                                                 : pinned_bytes_) += bytes;
    return device_->Allocate(bytes, kind);
  }
  absl::StatusOr<std::unique_ptr<server::device::Stream>> CreateStream(
      absl::string_view name) override {
    return device_->CreateStream(name);
  }
  absl::StatusOr<std::unique_ptr<server::device::Event>> CreateEvent()
      override {
    return device_->CreateEvent();
  }
  void CopyToDevice(server::device::Stream& stream, std::byte* device,
                    const std::byte* host, int64_t bytes) override {
    device_->CopyToDevice(stream, device, host, bytes);
  }
  void CopyToHost(server::device::Stream& stream, std::byte* host,
                  const std::byte* device, int64_t bytes) override {
    device_->CopyToHost(stream, host, device, bytes);
  }
  server::device::Ops& ops() override { return device_->ops(); }

 private:
  const std::unique_ptr<Device> device_;
  int64_t device_bytes_ = 0;
  int64_t pinned_bytes_ = 0;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_MODEL_COUNTING_DEVICE_H_
