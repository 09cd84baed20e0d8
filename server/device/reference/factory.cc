#include "server/device/reference/factory.h"

#include "server/device/host/host_device.h"
#include "server/device/reference/reference_ops.h"

namespace penstock::server::device::reference {

absl::StatusOr<std::unique_ptr<Device>> CreateReferenceDevice() {
  return std::make_unique<host::HostDevice>(
      host::HostDevice::Options{.kind = "reference",
                                .numerics_id = kNumericsId,
                                .ops = std::make_unique<ReferenceOps>()});
}

}  // namespace penstock::server::device::reference
