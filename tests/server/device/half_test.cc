#include "server/device/half.h"

#include <bit>
#include <cmath>

#include "gtest/gtest.h"

namespace penstock::server::device {
namespace {

float FromF16(uint16_t value) {
  return std::bit_cast<float>(BitsFromF16(value));
}

// The definition of binary16: sign, 5 exponent bits, 10 mantissa bits.
double F16Value(uint16_t value) {
  const int exponent = value >> 10 & 31;
  const double mantissa = value & 1023;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -24)
                               : std::ldexp(1024 + mantissa, exponent - 25);
  return value & 0x8000 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryFiniteF16IsExact) {
  for (uint32_t v = 0; v < 0x10000; ++v) {
    if ((v >> 10 & 31) == 31) continue;
    ASSERT_EQ(FromF16(v), F16Value(v)) << v;
    ASSERT_EQ(std::signbit(FromF16(v)), (v & 0x8000) != 0) << v;
  }
}

TEST(HalfTest, F16InfinitiesAndNansStay) {
  EXPECT_EQ(FromF16(0x7C00), INFINITY);
  EXPECT_EQ(FromF16(0xFC00), -INFINITY);
  EXPECT_TRUE(std::isnan(FromF16(0x7C01)));
  EXPECT_TRUE(std::isnan(FromF16(0xFE00)));
}

TEST(HalfTest, EveryBf16IsTheUpperHalfOfItsF32) {
  for (uint32_t v = 0; v < 0x10000; ++v) {
    ASSERT_EQ(BitsFromBf16(v), v << 16);
  }
  EXPECT_EQ(std::bit_cast<float>(BitsFromBf16(0xC020)), -2.5f);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(BitsFromBf16(0x7F81))));
}

}  // namespace
}  // namespace penstock::server::device
