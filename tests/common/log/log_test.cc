#include "common/log/log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::common::log {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(LogTest, LineCarriesSeverityProcessAndPlace) {
  Configure({.process = "stage-2"});
  ::testing::internal::CaptureStderr();
  LOG(WARNING) << "low memory: " << 7;
  const std::string line = ::testing::internal::GetCapturedStderr();
  Configure({});
  EXPECT_THAT(line, ContainsRegex("^20.*Z WARNING stage-2 .*log_test.cc:"));
  EXPECT_THAT(line, HasSubstr("low memory: 7\n"));
}

TEST(LogTest, JsonEscapesControlCharacters) {
  Configure({.format = Format::kJson});
  ::testing::internal::CaptureStderr();
  LOG(INFO) << "a \"quoted\"\nline";
  const std::string line = ::testing::internal::GetCapturedStderr();
  Configure({});
  EXPECT_THAT(line, HasSubstr("a \\\"quoted\\\"\\u000aline"));
}

TEST(LogTest, BelowMinimumIsSilent) {
  Configure({.minimum = Severity::kError});
  ::testing::internal::CaptureStderr();
  LOG(INFO) << "hidden";
  const std::string line = ::testing::internal::GetCapturedStderr();
  Configure({});
  EXPECT_EQ(line, "");
}

TEST(LogDeathTest, FailedCheckPrintsConditionAndContext) {
  const int slot = 3;
  EXPECT_DEATH(CHECK_LT(slot, 2) << "slots", "CHECK failed.*3 vs 2 slots");
}

}  // namespace
}  // namespace penstock::common::log
