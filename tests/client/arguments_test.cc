#include "client/arguments.h"

#include <string>
#include <vector>

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

TEST(ArgumentsTest, AWordThatIsNoVerbIsNamedWithThoseThatAre) {
  const std::vector<std::string> verbs = {"run", "verify"};
  EXPECT_THAT(
      CheckVerb({"nope", "--help"}, verbs),
      StatusIs(kRefused, "there is no verb \"nope\"; there are run, verify"));
  EXPECT_THAT(CheckVerb({"run", "nope"}, verbs), IsOk());
  EXPECT_THAT(CheckVerb({"--help"}, verbs), IsOk());
  EXPECT_THAT(CheckVerb({}, verbs), IsOk());
}

}  // namespace
}  // namespace penstock::client
