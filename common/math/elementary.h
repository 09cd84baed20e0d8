// Elementary functions in f64 from plain arithmetic.
//
// The C library picks its code by the CPU at hand (with or without FMA), so its
// bits are no function of the arguments alone; these are (the build forbids
// contraction to FMA). Relative error below 1e-14 in the stated ranges, far
// below the f32 results that they round to. Pure functions.
#ifndef PENSTOCK_COMMON_MATH_ELEMENTARY_H_
#define PENSTOCK_COMMON_MATH_ELEMENTARY_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock::common::math {

// 0 below -708, clamped above 709. NaN gives NaN.
inline double Exp(double x) {
  if (x < -708) return 0;
  if (x > 709) x = 709;
  if (x != x) return x;
  // x = n ln2 + r, |r| <= ln2 / 2; ln2 in two parts keeps r exact.
  const double n = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
  double sum = 1;  // Taylor: 1 + r (1 + r/2 (1 + r/3 (...)))
  for (int i = 13; i >= 1; --i) sum = 1 + sum * r / i;
  const uint64_t exponent = static_cast<uint64_t>(static_cast<int64_t>(n)) +
                            1023;  // Of 2^n, as IEEE bits.
  return sum * std::bit_cast<double>(exponent << 52);
}

// REQUIRES: x is positive and normal. NaN and infinity give themselves.
inline double Log(double x) {
  if (!(x < INFINITY)) return x;
  // x = 2^e m, m in [sqrt(1/2), sqrt(2)).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) |
                                   uint64_t{1023} << 52);
  if (m > 1.4142135623730951) {
    m /= 2;
    e += 1;
  }
  // log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int i = 21; i >= 1; i -= 2) sum = 1.0 / i + sum * s * s;
  return static_cast<double>(e) * 0.6931471805599453 + 2 * s * sum;
}

inline double Tanh(double x) {
  const double a = std::abs(x);
  if (a < 0.02) return x * (1 - x * x / 3 + 2 * x * x * x * x / 15);
  const double t = 1 - 2 / (Exp(2 * a) + 1);
  return x < 0 ? -t : t;
}

inline double Sigmoid(double x) { return 1 / (1 + Exp(-x)); }

// x in radians. Error below 1e-15 for |x| up to 1e6 (of 1, not of the result:
// near a zero of the function few digits are right); NaN for infinities.
double Sin(double x);
double Cos(double x);

// base^exponent: by logarithms, with a relative error below
// 1e-14 * (1 + |exponent * log(base)|).
// REQUIRES: base is positive and normal.
inline double Pow(double base, double exponent) {
  return Exp(exponent * Log(base));
}

// base^exponent by repeated squaring, with a relative error below
// exponent * 2^-52. REQUIRES: exponent >= 0.
double IntegerPow(double base, int64_t exponent);

}  // namespace penstock::common::math

#endif  // PENSTOCK_COMMON_MATH_ELEMENTARY_H_
