#include "server/device/cpu/factory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/device/cpu/cpu_ops.h"
#include "server/device/cpu/kernel_table.h"
#include "server/device/host/host_device.h"

namespace penstock::server::device::cpu {
namespace {

std::vector<Isa> IsasUpTo(std::optional<Isa> max_isa) {
  std::vector<Isa> isas;
  for (const Isa isa : SupportedIsas()) {
    if (!max_isa.has_value() || isa <= *max_isa) isas.push_back(isa);
  }
  return isas;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(
    const CpuOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads is ", options.threads, "; it must be at least 1"));
  }
  const std::vector<Isa> isas = IsasUpTo(options.max_isa);
  if (isas.empty()) {
    return absl::FailedPreconditionError(
        "the cpu device needs a CPU with SSE4.1; use device reference");
  }
  const Isa isa = isas.back();
  const host::HostMemory memory;
  ASSIGN_OR_RETURN(std::unique_ptr<CpuOps> ops,
                   CpuOps::Create(isa, options.threads, memory));
  return std::make_unique<host::HostDevice>(
      host::HostDevice::Options{.kind = "cpu",
                                .numerics_id = NumericsId(isa),
                                .memory = memory,
                                .ops = std::move(ops)});
}

std::vector<std::string> SupportedNumericsIds(std::optional<Isa> max_isa) {
  std::vector<std::string> ids;
  for (const Isa isa : IsasUpTo(max_isa)) ids.push_back(NumericsId(isa));
  return ids;
}

}  // namespace penstock::server::device::cpu
