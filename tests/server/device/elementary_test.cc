#include "server/device/elementary.h"

#include <cmath>

#include "gtest/gtest.h"

namespace penstock::server::device {
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
}  // namespace penstock::server::device
