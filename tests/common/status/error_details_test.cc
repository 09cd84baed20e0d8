#include "common/status/error_details.h"

#include "absl/status/statusor.h"
#include "common/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::status {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;

TEST(ErrorDetailsTest, AnnotateKeepsCodeAndReason) {
  const absl::Status lost =
      WithReason(absl::UnavailableError("connection reset"), "STAGE_LOST");
  const absl::Status annotated = Annotate(lost, "stage 2");
  EXPECT_THAT(annotated, StatusIs(absl::StatusCode::kUnavailable,
                                  "stage 2: connection reset"));
  EXPECT_EQ(Reason(annotated), "STAGE_LOST");
}

TEST(ErrorDetailsTest, OkStaysOkAndHasNoReason) {
  EXPECT_OK(Annotate(absl::OkStatus(), "anything"));
  EXPECT_EQ(Reason(WithReason(absl::OkStatus(), "USER")), "");
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  RETURN_IF_ERROR(Half(half).status());
  return Half(half);
}

TEST(StatusMacrosTest, FirstErrorIsReturned) {
  EXPECT_THAT(Quarter(8), IsOkAndHolds(2));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

}  // namespace
}  // namespace penstock::common::status
