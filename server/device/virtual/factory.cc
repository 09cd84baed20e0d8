#include "server/device/virtual/factory.h"

#include "absl/strings/str_cat.h"
#include "server/device/host/host_device.h"
#include "server/device/reference/factory.h"
#include "server/device/reference/reference_ops.h"
#include "server/device/virtual/virtual_stream.h"

namespace penstock::server::device::virtual_device {

std::string NumericsId() {
  return absl::StrCat("virtual-", reference::kNumericsId);
}

absl::StatusOr<std::unique_ptr<Device>> CreateVirtualDevice(
    const common::time::Clock& clock) {
  return std::make_unique<host::HostDevice>(host::HostDevice::Options{
      .kind = "virtual",
      .numerics_id = NumericsId(),
      .ops = std::make_unique<reference::ReferenceOps>(),
      .make_stream = [&clock] {
        return std::make_unique<VirtualStream>(clock);
      }});
}

}  // namespace penstock::server::device::virtual_device
