// How ops are cut into blocks that threads take: functions of the shape alone.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_BLOCK_SIZES_H_
#define PENSTOCK_SERVER_DEVICE_CPU_BLOCK_SIZES_H_

#include <algorithm>
#include <cstdint>

namespace penstock::server::device::cpu {

// `value`, or the next multiple of `unit` above it.
constexpr int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Large against the cost of handing a block to a thread.
inline constexpr int64_t kElementsAtOnce = 16384;
inline constexpr int64_t kColumnsAtOnce = 64;

// Rows with about kElementsAtOnce elements.
inline int64_t RowsAtOnce(int64_t width) {
  return std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(1, width));
}

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_BLOCK_SIZES_H_
