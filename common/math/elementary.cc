#include "common/math/elementary.h"

namespace penstock::common::math {
namespace {

// x = quarter * pi/2 + rest, |rest| <= pi/4.
struct Reduced {
  int64_t quarter;
  double rest;
};

Reduced Reduce(double x) {
  constexpr double kTwoOverPi = 0.6366197723675814;
  // pi/2 in three parts (Cody and Waite), the first two of 33 bits: their
  // products with a quarter below 2^20 are exact.
  constexpr double kHigh = 0x1.921fb544p+0;
  constexpr double kMiddle = 0x1.0b4611a6p-34;
  constexpr double kLow = 0x1.3198a2e037073p-69;
  const double quarter = std::floor(x * kTwoOverPi + 0.5);
  return {static_cast<int64_t>(quarter),
          ((x - quarter * kHigh) - quarter * kMiddle) - quarter * kLow};
}

// Taylor, to below the last bit for |r| <= pi/4.
double SinOfRest(double r) {
  const double z = r * r;
  double sum = 0;
  for (int n = 16; n >= 2; n -= 2) sum = -z / (n * (n + 1)) * (1 + sum);
  return r + r * sum;
}

double CosOfRest(double r) {
  const double z = r * r;
  double sum = 0;
  for (int n = 17; n >= 1; n -= 2) sum = -z / (n * (n + 1)) * (1 + sum);
  return 1 + sum;
}

double SinOfQuarters(const Reduced& x, int64_t more) {
  switch ((x.quarter + more) & 3) {
    case 0:
      return SinOfRest(x.rest);
    case 1:
      return CosOfRest(x.rest);
    case 2:
      return -SinOfRest(x.rest);
    default:
      return -CosOfRest(x.rest);
  }
}

}  // namespace

double Sin(double x) {
  if (!(std::abs(x) < INFINITY)) return NAN;
  return SinOfQuarters(Reduce(x), 0);
}

double Cos(double x) {
  if (!(std::abs(x) < INFINITY)) return NAN;
  return SinOfQuarters(Reduce(x), 1);
}

double IntegerPow(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace penstock::common::math
