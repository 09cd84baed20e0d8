// What device memory is for, and how much of it there is: counted where it is
// allocated, so that a plan can be held against what a device really gave.
#ifndef PENSTOCK_SERVER_DEVICE_MEMORY_USAGE_H_
#define PENSTOCK_SERVER_DEVICE_MEMORY_USAGE_H_

#include <array>
#include <cstdint>

namespace penstock::server::device {

// The parts of the plan's memory model (MemoryBytes on the wire), and
// kPinnedHost: memory that host code may touch and device copies may use
// asynchronously. All other memory only ops, copies and the transport touch.
enum class MemoryUse {
  kParameters,
  kGradients,
  kOptimizer,
  kActivationSlots,
  kWorkspace,
  kTransferSlots,
  kPinnedHost,
};
inline constexpr int kMemoryUses = 7;

struct MemoryCount {
  int64_t bytes = 0;        // Held now.
  int64_t peak_bytes = 0;   // The most so far.
  int64_t allocations = 0;  // Made so far, freed or not.

  friend bool operator==(const MemoryCount&, const MemoryCount&) = default;
};

// A plain value.
struct MemoryUsage {
  std::array<MemoryCount, kMemoryUses> counts;

  MemoryCount& of(MemoryUse use) { return counts[static_cast<int>(use)]; }
  const MemoryCount& of(MemoryUse use) const {
    return counts[static_cast<int>(use)];
  }
  // Held now, without pinned host memory.
  int64_t device_bytes() const {
    int64_t bytes = -of(MemoryUse::kPinnedHost).bytes;
    for (const MemoryCount& count : counts) bytes += count.bytes;
    return bytes;
  }

  friend bool operator==(const MemoryUsage&, const MemoryUsage&) = default;
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_MEMORY_USAGE_H_
