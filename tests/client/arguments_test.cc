#include "client/arguments.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST(ArgumentsTest, Utf8IsWhatRfc3629Says) {
  for (const char* good : {"", "plain", "h\u00e4\u20ac", "\U0001F600",
                           "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  // Not a lead byte, cut off, overlong, a surrogate, beyond the last.
  for (const char* bad : {"\xff", "\x80", "a\xc3", "\xe2\x82", "\xc0\xaf",
                          "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(ArgumentsTest, TheFlagOfWhatIsNotUtf8IsNamed) {
  EXPECT_THAT(CheckArguments({"run", "job.yaml", "--run-dir", "out/\xc3\xa4"}),
              IsOk());
  EXPECT_THAT(
      CheckArguments({"run", "job.yaml", "--run-dir", "a\xff"}),
      StatusIs(kRefused, StartsWith("--run-dir: \"a\\xff\" is not UTF-8")));
  EXPECT_THAT(CheckArguments({"run", "job.yaml", "--set=name=\xff"}),
              StatusIs(kRefused, StartsWith("--set: ")));
  EXPECT_THAT(CheckArguments({"run", "\xff.yaml"}),
              StatusIs(kRefused, StartsWith("argument 2: ")));
}

TEST(ArgumentsTest, AVerbOfLaterVersionsIsNamed) {
  EXPECT_THAT(CheckArguments({"submit", "job.yaml"}),
              StatusIs(kRefused, HasSubstr("\"submit\" is not built yet")));
  EXPECT_THAT(CheckArguments({"run", "submit"}), IsOk());
  EXPECT_THAT(CheckArguments({}), IsOk());
}

}  // namespace
}  // namespace penstock::client
