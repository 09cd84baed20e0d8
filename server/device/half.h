// The bits of f32 values from those of the 16-bit formats.
//
// Integer arithmetic only, so that denormals survive whatever the thread's
// float mode is. NaNs stay NaNs (quiet), infinities infinities.
#ifndef PENSTOCK_SERVER_DEVICE_HALF_H_
#define PENSTOCK_SERVER_DEVICE_HALF_H_

#include <bit>
#include <cstdint>

namespace penstock::server::device {

inline uint32_t BitsFromBf16(uint16_t value) { return uint32_t{value} << 16; }

inline uint32_t BitsFromF16(uint16_t value) {
  const uint32_t sign = uint32_t{value & 0x8000u} << 16;
  uint32_t mantissa = value & 0x3FFu;
  uint32_t exponent = value >> 10 & 0x1Fu;
  if (exponent == 0x1F) {  // Infinity or NaN.
    return sign | 0x7F800000u | mantissa << 13 | (mantissa ? 0x400000u : 0u);
  }
  if (exponent == 0) {
    if (mantissa == 0) return sign;
    // A denormal: 2^-24 * mantissa, normalised.
    const int shift = std::countl_zero(mantissa) - 21;
    mantissa = mantissa << shift & 0x3FFu;
    exponent = 1 - shift;  // May wrap below 0: the bias below makes it good.
  }
  return sign | (exponent + 112) << 23 | mantissa << 13;
}

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_HALF_H_
