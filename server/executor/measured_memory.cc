#include "server/executor/measured_memory.h"

namespace penstock::server::executor {

v1::MemoryBytes PeakMemory(const device::MemoryUsage& usage) {
  using device::MemoryUse;
  const auto peak = [&](MemoryUse use) { return usage.of(use).peak_bytes; };
  v1::MemoryBytes bytes;
  bytes.set_parameters(peak(MemoryUse::kParameters));
  bytes.set_gradients(peak(MemoryUse::kGradients));
  bytes.set_optimizer(peak(MemoryUse::kOptimizer));
  bytes.set_activation_slots(peak(MemoryUse::kActivationSlots));
  bytes.set_workspace(peak(MemoryUse::kWorkspace));
  bytes.set_transfer_slots(peak(MemoryUse::kTransferSlots));
  return bytes;
}

}  // namespace penstock::server::executor
