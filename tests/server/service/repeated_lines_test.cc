#include "server/service/repeated_lines.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::server::service {
namespace {

using ::testing::Optional;

common::time::MonotonicTime At(double seconds) {
  return common::time::MonotonicTime::FromZero(absl::Seconds(100 + seconds));
}

TEST(RepeatedLinesTest, TheFirstIsSaidAtOnceAndTheOthersAreSummedUp) {
  RepeatedLines lines;
  EXPECT_THAT(lines.Next("refused", "no", At(0)), Optional(std::string("no")));
  for (int i = 1; i <= 14; ++i) {
    EXPECT_EQ(lines.Next("refused", "no", At(2 * i)), std::nullopt);
  }
  EXPECT_THAT(lines.Next("refused", "no", At(30)),
              Optional(std::string("no (and 14 times more in the last 30s)")));
  EXPECT_EQ(lines.Next("refused", "no", At(59.9)), std::nullopt);
  // In the words of the newest.
  EXPECT_THAT(
      lines.Next("refused", "never", At(61)),
      Optional(std::string("never (and 1 times more in the last 31s)")));
  // Nothing was left out.
  EXPECT_THAT(lines.Next("refused", "no", At(91)), Optional(std::string("no")));
}

TEST(RepeatedLinesTest, EachKindHasItsOwnFirst) {
  RepeatedLines lines;
  EXPECT_THAT(lines.Next("refused", "no", At(0)), Optional(std::string("no")));
  EXPECT_THAT(lines.Next("broken", "oh", At(1)), Optional(std::string("oh")));
  EXPECT_EQ(lines.Next("broken", "oh", At(2)), std::nullopt);
}

TEST(RepeatedLinesTest, AfterASuccessTheNextOneIsNew) {
  RepeatedLines lines;
  EXPECT_THAT(lines.Next("refused", "no", At(0)), Optional(std::string("no")));
  EXPECT_EQ(lines.Next("refused", "no", At(1)), std::nullopt);
  lines.Forget();
  EXPECT_THAT(lines.Next("refused", "no", At(2)), Optional(std::string("no")));
}

}  // namespace
}  // namespace penstock::server::service
