// Which values of a tensor in host memory are NaN or infinite.
#ifndef PENSTOCK_SERVER_DEVICE_FINITE_H_
#define PENSTOCK_SERVER_DEVICE_FINITE_H_

#include <bit>
#include <cstdint>

#include "absl/types/span.h"

namespace penstock::server::device {

// How many; by their bits, so that nothing depends on the mode of the thread.
inline int64_t CountNonFinite(absl::Span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000u;
  int64_t count = 0;
  for (const float value : values) {
    count += (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1 : 0;
  }
  return count;
}

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_FINITE_H_
