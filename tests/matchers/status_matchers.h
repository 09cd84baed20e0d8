// IsOk, IsOkAndHolds, StatusIs: the names and meaning of later abseil
// releases' status matchers.
//
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument,
//                                    HasSubstr("line 1")));
//   EXPECT_THAT(Parse("1"), IsOkAndHolds(1));
#ifndef PENSTOCK_TESTS_MATCHERS_STATUS_MATCHERS_H_
#define PENSTOCK_TESTS_MATCHERS_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace penstock::testing {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = GetStatus(arg);
  *result_listener << status.ToString();
  return status.ok();
}

MATCHER_P2(StatusIsMatcher, code, message, "") {
  const absl::Status& status = GetStatus(arg);
  *result_listener << status.ToString();
  return ::testing::Matches(code)(status.code()) &&
         ::testing::Matches(message)(std::string(status.message()));
}
template <typename Code, typename Message>
auto StatusIs(Code code, Message message) {
  return StatusIsMatcher(::testing::Matcher<absl::StatusCode>(code),
                         ::testing::Matcher<std::string>(message));
}
template <typename Code>
auto StatusIs(Code code) {
  return StatusIs(code, ::testing::_);
}

MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

#define ASSERT_OK(expr) ASSERT_THAT(expr, ::penstock::testing::IsOk())
#define EXPECT_OK(expr) EXPECT_THAT(expr, ::penstock::testing::IsOk())

#define PENSTOCK_TEST_CONCAT_INNER_(a, b) a##b
#define PENSTOCK_TEST_CONCAT_(a, b) PENSTOCK_TEST_CONCAT_INNER_(a, b)
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  PENSTOCK_ASSERT_OK_AND_ASSIGN_(       \
      PENSTOCK_TEST_CONCAT_(penstock_test_statusor_, __LINE__), lhs, expr)
#define PENSTOCK_ASSERT_OK_AND_ASSIGN_(result, lhs, expr) \
  auto result = (expr);                                   \
  ASSERT_OK(result.status());                             \
  lhs = *std::move(result)

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_MATCHERS_STATUS_MATCHERS_H_
