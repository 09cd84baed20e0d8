// The devices that this build has, by name.
#ifndef PENSTOCK_SERVER_BACKENDS_H_
#define PENSTOCK_SERVER_BACKENDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/time/clock.h"
#include "server/device/device.h"

namespace penstock::server {

// The numerics ids that a device kind can run on this machine, best first.
// `cpu_isa` ("sse4", "avx2", "avx512") caps the kind "cpu"; empty: what there
// is. InvalidArgument naming the kinds or levels that there are.
absl::StatusOr<std::vector<std::string>> NumericsIds(absl::string_view kind,
                                                     absl::string_view cpu_isa);

// A device of that kind whose bits are those of `numerics_id`.
// FailedPrecondition, reason NUMERICS_MISMATCH, when this machine has no such;
// ResourceExhausted when the system has not that many threads.
struct DeviceOptions {
  std::string kind;
  std::string numerics_id;
  int threads = 1;  // Compute threads, where the kind has several.
  // Of "virtual"; outlives the device.
  const common::time::Clock* clock = nullptr;
};
absl::StatusOr<std::unique_ptr<device::Device>> CreateDevice(
    const DeviceOptions& options);

}  // namespace penstock::server

#endif  // PENSTOCK_SERVER_BACKENDS_H_
