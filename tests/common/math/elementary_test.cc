#include "common/math/elementary.h"

#include <cmath>

#include "gtest/gtest.h"

namespace penstock::common::math {
namespace {

double RelativeError(double value, double expected) {
  return std::abs(value - expected) / std::abs(expected);
}

TEST(ElementaryTest, ExpAgreesWithTheLibrary) {
  for (double x = -700; x < 700; x += 0.0371) {
    ASSERT_LT(RelativeError(Exp(x), std::exp(x)), 1e-14) << x;
  }
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Exp(-INFINITY), 0);
  EXPECT_EQ(Exp(-1000), 0);
  EXPECT_TRUE(std::isnan(Exp(NAN)));
  EXPECT_GT(Exp(INFINITY), 1e300);
}

TEST(ElementaryTest, LogAgreesWithTheLibrary) {
  for (double x = 1.0078125; x < 1e9; x *= 1.00317) {
    ASSERT_LT(RelativeError(Log(x), std::log(x)), 1e-14) << x;
  }
  EXPECT_EQ(Log(1), 0);
  EXPECT_TRUE(std::isnan(Log(NAN)));
}

TEST(ElementaryTest, TanhAndSigmoidAgreeWithTheLibrary) {
  for (double x = -40; x < 40; x += 0.00313) {
    ASSERT_LT(RelativeError(Tanh(x), std::tanh(x)), 1e-11) << x;
    ASSERT_LT(RelativeError(Sigmoid(x), 1 / (1 + std::exp(-x))), 1e-13) << x;
  }
  EXPECT_EQ(Tanh(0), 0);
  EXPECT_EQ(Tanh(1e9), 1);
  EXPECT_EQ(Tanh(-1e9), -1);
}

}  // namespace
TEST(ElementaryTest, SinAndCosAgreeWithTheLibrary) {
  for (double x = -1e6; x < 1e6; x += 17.0093) {
    ASSERT_NEAR(Sin(x), std::sin(x), 1e-15) << x;
    ASSERT_NEAR(Cos(x), std::cos(x), 1e-15) << x;
  }
  for (double x = -10; x < 10; x += 0.00117) {
    ASSERT_NEAR(Sin(x), std::sin(x), 4e-16) << x;
    ASSERT_NEAR(Cos(x), std::cos(x), 4e-16) << x;
  }
  EXPECT_EQ(Sin(0), 0);
  EXPECT_EQ(Cos(0), 1);
  EXPECT_EQ(Sin(1e-300), 1e-300);
  EXPECT_TRUE(std::isnan(Sin(INFINITY)));
  EXPECT_TRUE(std::isnan(Cos(NAN)));
}

TEST(ElementaryTest, PowAgreesWithTheLibrary) {
  for (double base = 0.01; base < 1e7; base *= 1.37) {
    for (double exponent = -4; exponent <= 4; exponent += 0.0625) {
      ASSERT_LT(RelativeError(Pow(base, exponent), std::pow(base, exponent)),
                1e-12)
          << base << "^" << exponent;
    }
  }
}

TEST(ElementaryTest, IntegerPowAgreesWithTheLibrary) {
  for (const double base : {0.9, 0.95, 0.999, 0.9999999, 1.0, 1.0001}) {
    for (int64_t exponent = 0; exponent < 100000; exponent = exponent * 2 + 1) {
      const double expected = std::pow(base, static_cast<double>(exponent));
      ASSERT_NEAR(IntegerPow(base, exponent), expected,
                  0x1p-52 * static_cast<double>(exponent) * expected)
          << base << "^" << exponent;
    }
  }
  EXPECT_EQ(IntegerPow(0, 0), 1);
  EXPECT_EQ(IntegerPow(0, 3), 0);
}

}  // namespace penstock::common::math
