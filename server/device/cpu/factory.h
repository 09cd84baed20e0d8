// The device "cpu": own packed products and vector kernels (Highway), shared
// out over a few threads.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_FACTORY_H_
#define PENSTOCK_SERVER_DEVICE_CPU_FACTORY_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/cpu/isa.h"
#include "server/device/device.h"

namespace penstock::server::device::cpu {

struct CpuOptions {
  // Threads that compute, the caller's included. Never changes a bit.
  int threads = 1;
  // The highest level to use; none: the best that the machine has. A higher
  // one than it has means its best.
  std::optional<Isa> max_isa;
};

// Inline streams: an op runs on the thread that calls it, and its workers.
// Errors: InvalidArgument (threads below 1), FailedPrecondition (a CPU without
// SSE4), ResourceExhausted (the system has not that many threads).
absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(
    const CpuOptions& options);

// The numerics ids that this machine can run up to `max_isa`, lowest first: the
// coordinator picks the highest that all stages have.
std::vector<std::string> SupportedNumericsIds(std::optional<Isa> max_isa);

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_FACTORY_H_
