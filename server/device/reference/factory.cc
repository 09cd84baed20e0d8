#include "server/device/reference/factory.h"

#include "server/device/host/host_device.h"
#include "server/device/reference/reference_ops.h"

namespace penstock::server::device::reference {

// The number grows whenever any op's bits change; the golden hashes in
// tests/server/device/golden_bits_test.cc notice.
constexpr char kNumericsId[] = "reference-2";

absl::StatusOr<std::unique_ptr<Device>> CreateReferenceDevice() {
  return std::make_unique<host::HostDevice>(
      host::HostDevice::Options{.kind = "reference",
                                .numerics_id = kNumericsId,
                                .ops = std::make_unique<ReferenceOps>()});
}

}  // namespace penstock::server::device::reference
