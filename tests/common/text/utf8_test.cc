#include "common/text/utf8.h"

#include "gtest/gtest.h"

namespace penstock::common::text {
namespace {

TEST(Utf8Test, Utf8IsWhatRfc3629Says) {
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

TEST(Utf8Test, WhatIsNoUtf8IsEscapedAndTheRestStays) {
  EXPECT_EQ(Utf8OrEscaped("h\u00e4 \\x"), "h\u00e4 \\x");
  EXPECT_EQ(Utf8OrEscaped("a\xff.txt\xc3"), "a\\xff.txt\\xc3");
  EXPECT_TRUE(IsUtf8(Utf8OrEscaped("\xed\xa0\x80")));
}

TEST(Utf8Test, CharactersAreCountedNotBytes) {
  EXPECT_EQ(CharacterCount(""), 0u);
  EXPECT_EQ(CharacterCount("plain"), 5u);
  EXPECT_EQ(CharacterCount("h\u00e4\u20ac\U0001F600"), 4u);
}

TEST(Utf8Test, ControlCharactersAreNoTextButLineEndsAndTabsAre) {
  EXPECT_EQ(FindNotText("a\tb\r\nc\u00a0"), absl::string_view::npos);
  EXPECT_EQ(FindNotText("ab\x1b[m"), 2u);
  EXPECT_EQ(FindNotText("ab\x7f"), 2u);
  EXPECT_EQ(FindNotText("a\u009b"), 1u);
  EXPECT_EQ(FindNotText("a\xff"), 1u);
}

}  // namespace
}  // namespace penstock::common::text
