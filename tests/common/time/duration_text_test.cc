#include "common/time/duration_text.h"

#include "gtest/gtest.h"

namespace penstock::common::time {
namespace {

TEST(DurationTextTest, NoMoreDigitsThanAnybodyNeeds) {
  const struct {
    absl::Duration duration;
    const char* text;
  } kCases[] = {
      {absl::Hours(2) + absl::Minutes(3) + absl::Seconds(4.96), "2h3m4s"},
      {absl::Minutes(1) + absl::Nanoseconds(113038), "1m"},
      {absl::Minutes(1) - absl::Nanoseconds(1), "59.9s"},
      {absl::Seconds(4.26), "4.2s"},
      {absl::Seconds(1), "1s"},
      {absl::Seconds(1) - absl::Nanoseconds(1), "999ms"},
      {absl::Microseconds(35271), "35ms"},
      {absl::Nanoseconds(12999), "12us"},
      {absl::Nanoseconds(999), "0"},
      {absl::ZeroDuration(), "0"},
      {-absl::Seconds(4.26), "-4.2s"},
      {absl::InfiniteDuration(), "inf"},
  };
  for (const auto& each : kCases) {
    EXPECT_EQ(DurationText(each.duration), each.text);
  }
}

}  // namespace
}  // namespace penstock::common::time
