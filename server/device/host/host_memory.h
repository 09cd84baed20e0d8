// Memory of the devices that compute on the CPU, counted by use.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_
#define PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/memory_usage.h"

namespace penstock::server::device::host {

// A handle; copies count together. A device and its ops share one. Thread-safe.
class HostMemory {
 public:
  HostMemory();

  // 64-byte aligned; data() is never null, also for 0 bytes. Filled with f32
  // NaN patterns except in release builds. ResourceExhausted, naming the bytes,
  // when more is wanted than the process may have or the allocation fails.
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes,
                                                   MemoryUse use) const;
  MemoryUsage usage() const;

 private:
  class Counter;
  class CountedBuffer;

  const int64_t limit_;  // Of one buffer.
  // Shared with the buffers: a device's user may free one after the device.
  const std::shared_ptr<Counter> counter_;
};

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_
