// Memory of the devices that compute on the CPU.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_
#define PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/device/device.h"

namespace penstock::server::device::host {

// 64-byte aligned; data() is never null, also for 0 bytes. Filled with f32 NaN
// patterns except in release builds. ResourceExhausted, naming the bytes, when
// more is wanted than the machine has or the allocation fails.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateHostMemory(int64_t bytes);

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_HOST_MEMORY_H_
