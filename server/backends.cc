#include "server/backends.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "server/device/cpu/factory.h"
#include "server/device/cpu/isa.h"
#include "server/device/reference/factory.h"
#include "server/device/virtual/factory.h"

namespace penstock::server {
namespace {

constexpr absl::string_view kReference = "reference";
constexpr absl::string_view kCpu = "cpu";
constexpr absl::string_view kVirtual = "virtual";

absl::Status UnknownKind(absl::string_view kind) {
  return absl::InvalidArgumentError(
      absl::StrCat("device '", kind, "': this build has ", kReference, ", ",
                   kCpu, " and ", kVirtual));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NumericsIds(
    absl::string_view kind, absl::string_view cpu_isa) {
  if (kind == kReference) {
    ASSIGN_OR_RETURN(const auto device,
                     device::reference::CreateReferenceDevice());
    return std::vector<std::string>{device->numerics_id()};
  }
  if (kind == kVirtual) {
    return std::vector<std::string>{device::virtual_device::NumericsId()};
  }
  if (kind != kCpu) return UnknownKind(kind);
  std::optional<device::cpu::Isa> cap;
  if (!cpu_isa.empty()) {
    ASSIGN_OR_RETURN(cap, device::cpu::ParseIsa(cpu_isa));
  }
  std::vector<std::string> ids = device::cpu::SupportedNumericsIds(cap);
  return std::vector<std::string>(ids.rbegin(), ids.rend());
}

absl::StatusOr<std::unique_ptr<device::Device>> CreateDevice(
    const DeviceOptions& options) {
  if (options.kind == kReference) {
    ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device,
                     device::reference::CreateReferenceDevice());
    if (device->numerics_id() == options.numerics_id) return device;
  } else if (options.kind == kVirtual) {
    if (options.numerics_id == device::virtual_device::NumericsId()) {
      CHECK(options.clock != nullptr);
      return device::virtual_device::CreateVirtualDevice(*options.clock);
    }
  } else if (options.kind == kCpu) {
    for (const device::cpu::Isa isa : device::cpu::SupportedIsas()) {
      if (device::cpu::SupportedNumericsIds(isa).back() ==
          options.numerics_id) {
        return device::cpu::CreateCpuDevice(
            {.threads = options.threads, .max_isa = isa});
      }
    }
  } else {
    return UnknownKind(options.kind);
  }
  return common::status::WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "numerics ", options.numerics_id,
          " cannot be run on this machine's device '", options.kind, "'")),
      common::status::kReasonNumericsMismatch);
}

}  // namespace penstock::server
