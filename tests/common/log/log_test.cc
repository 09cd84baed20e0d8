#include "common/log/log.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
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

std::string Logged(absl::string_view message) {
  ::testing::internal::CaptureStderr();
  LOG(INFO) << message;
  return ::testing::internal::GetCapturedStderr();
}

// As from a peer's failure.
TEST(LogTest, ALineFeedInAMessageForgesNoLine) {
  const std::string forged =
      "lost\n2026-11-30T14:00:00.000000Z INFO a.cc:1] all is well\x1b[2J";
  const std::string line = Logged(forged);
  EXPECT_THAT(line, HasSubstr("] lost\\n2026-11-30T14:00:00.000000Z INFO "
                              "a.cc:1] all is well\\x1b[2J\n"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(LogTest, WhatIsNoUtf8IsEscapedInBothFormats) {
  EXPECT_THAT(Logged("a\xff na\xc3\xafve"),
              HasSubstr("] a\\xff na\xc3\xafve\n"));
  Configure({.format = Format::kJson});
  EXPECT_THAT(Logged("a\xff na\xc3\xafve"),
              HasSubstr("\"a\\\\xff na\xc3\xafve\"}\n"));
  Configure({});
}

TEST(LogTest, ALongMessageIsCutBetweenCharacters) {
  const std::string most(kMaxMessageBytes, 'x');
  EXPECT_THAT(Logged(most), HasSubstr("] " + most + "\n"));
  EXPECT_THAT(Logged(most + "yz"),
              HasSubstr("] " + most + "... (2 more bytes)\n"));
  const std::string odd = most.substr(1) + "\xc3\xaf";  // Over by one byte.
  EXPECT_THAT(Logged(odd),
              HasSubstr("] " + most.substr(1) + "... (2 more bytes)\n"));
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
