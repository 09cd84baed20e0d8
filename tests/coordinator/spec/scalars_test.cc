#include "coordinator/spec/scalars.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace penstock::coordinator::spec {
namespace {

TEST(ScalarsTest, NumbersWithAndWithoutPointAndExponent) {
  EXPECT_EQ(ParseNumber("1e-3"), 1e-3);
  EXPECT_EQ(ParseNumber("1.0e-3"), 1e-3);
  EXPECT_EQ(ParseNumber("-2.5E+2"), -250);
  EXPECT_EQ(ParseNumber(".5"), 0.5);
  for (const char* bad : {"", "-", ".", "e5", "1e", "1_000", "0x10", "nan",
                          "inf", ".inf", "1e999", "1.2.3", " 1", "1 ", "+-1"}) {
    EXPECT_EQ(ParseNumber(bad), std::nullopt) << bad;
  }
}

TEST(ScalarsTest, WholeNumbers) {
  EXPECT_EQ(ParseWhole("12"), 12);
  EXPECT_EQ(ParseWhole("-3"), -3);
  EXPECT_EQ(ParseWhole("1e4"), 10000);
  EXPECT_EQ(ParseWhole("3.0"), 3);
  EXPECT_EQ(ParseWhole("1.5e1"), 15);
  EXPECT_EQ(ParseWhole("9223372036854775807"),
            std::numeric_limits<int64_t>::max());
  for (const char* bad : {"1.5", "1e-1", "9223372036854775808", "1e300", ""}) {
    EXPECT_EQ(ParseWhole(bad), std::nullopt) << bad;
  }
}

TEST(ScalarsTest, Sizes) {
  EXPECT_EQ(ParseByteSize("17"), 17);
  EXPECT_EQ(ParseByteSize("2KiB"), 2048);
  EXPECT_EQ(ParseByteSize("1.5 GiB"), int64_t{3} << 29);
  for (const char* bad : {"4GB", "4G", "-1KiB", "0.1KiB", "KiB", "1e300GiB"}) {
    EXPECT_EQ(ParseByteSize(bad), std::nullopt) << bad;
  }
  for (const int64_t bytes : {int64_t{1}, int64_t{1} << 10, int64_t{3} << 29,
                              (int64_t{1} << 40) + 1}) {
    EXPECT_EQ(ParseByteSize(FormatByteSize(bytes)), bytes);
  }
}

TEST(ScalarsTest, Times) {
  EXPECT_EQ(ParseTime("5ms"), absl::Milliseconds(5));
  EXPECT_EQ(ParseTime("1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(ParseTime("1h30m"), absl::Minutes(90));
  EXPECT_EQ(ParseTime("0"), absl::ZeroDuration());
  for (const char* bad :
       {"5", "-1s", "s", "1d", "inf", "", "99999999999999999h"}) {
    EXPECT_EQ(ParseTime(bad), std::nullopt) << bad;
  }
  for (const absl::Duration time :
       {absl::ZeroDuration(), absl::Nanoseconds(500), absl::Hours(2),
        absl::Microseconds(1234567)}) {
    EXPECT_EQ(ParseTime(FormatTime(time)), time);
  }
}

TEST(ScalarsTest, SharesAreExact) {
  EXPECT_EQ(ParseShare("5%"), 50000);
  EXPECT_EQ(ParseShare("0.29%"), 2900);
  EXPECT_EQ(ParseShare("99.9999%"), 999999);
  for (const char* bad :
       {"0%", "100%", "5", "-1%", "0.00001%", "1e-9%", "%", "5%%"}) {
    EXPECT_EQ(ParseShare(bad), std::nullopt) << bad;
  }
  for (int64_t share = 1; share < 1000000; share += 997) {
    ASSERT_EQ(ParseShare(FormatShare(share)), share);
  }
}

TEST(ScalarsTest, FormattedNumbersReadBackExactly) {
  for (const double value :
       {0.0, 0.1, 1.0 / 3, 1e-8, 5e5, 1e300, 5e-324, -2.5,
        std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()}) {
    EXPECT_EQ(ParseNumber(FormatNumber(value)), value);
  }
  EXPECT_EQ(FormatNumber(500000), "500000");
  EXPECT_EQ(FormatNumber(1e-8), "1e-08");
}

}  // namespace
}  // namespace penstock::coordinator::spec
