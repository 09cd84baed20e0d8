#include "common/text/quote.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"
#include "gtest/gtest.h"

namespace penstock::common::text {
namespace {

TEST(QuotedTest, TextStaysAsItIs) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("h.0.attn"), "\"h.0.attn\"");
  EXPECT_EQ(Quoted("na\xc3\xafve \xe2\x82\xac"),
            "\"na\xc3\xafve \xe2\x82\xac\"");
}

TEST(QuotedTest, WhatATerminalObeysAndWhatIsNoTextIsEscaped) {
  EXPECT_EQ(Quoted("a\"b\\c\td\ne\x1b[2J\x7f"),
            R"("a\"b\\c\td\ne\x1b[2J\x7f")");
  EXPECT_EQ(Quoted(absl::string_view("a\0b", 3)), R"("a\x00b")");
  EXPECT_EQ(Quoted("\xc2\x9b"), R"("\xc2\x9b")");  // C1.
  EXPECT_EQ(Quoted("\xff\xc3"), R"("\xff\xc3")");
}

TEST(QuotedTest, IsCutBetweenCharacters) {
  const std::string full(kMaxQuotedBytes, 'x');
  EXPECT_EQ(Quoted(full), absl::StrCat("\"", full, "\""));
  EXPECT_EQ(Quoted(full + "y"), absl::StrCat("\"", full, "...\""));
  const std::string odd = full.substr(1) + "\xc3\xaf";  // Over by one byte.
  EXPECT_EQ(Quoted(odd), absl::StrCat("\"", full.substr(1), "...\""));
}

TEST(QuotedTest, IsAlwaysUtf8) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.assign(70, static_cast<char>(byte));
    EXPECT_TRUE(IsUtf8(Quoted(bytes))) << byte;
  }
}

TEST(CutAfterTest, SaysHowMuchIsLeftOutAndCutsNoCharacter) {
  EXPECT_EQ(CutAfter(3, "abc"), "abc");
  EXPECT_EQ(CutAfter(3, "abcde"), "abc... (2 more bytes)");
  EXPECT_EQ(CutAfter(2, "a\xe2\x82\xac"), "a... (3 more bytes)");
  EXPECT_EQ(CutAfter(3, "a\xe2\x82\xac"), "a... (3 more bytes)");
  EXPECT_EQ(CutAfter(0, "a"), "... (1 more bytes)");
}

TEST(OneLineTest, TextStaysAsItIs) {
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine("a \"b\" \\c na\xc3\xafve \xe2\x82\xac"),
            "a \"b\" \\c na\xc3\xafve \xe2\x82\xac");
}

TEST(OneLineTest, LineFeedsControlCharactersAndWhatIsNoUtf8AreEscaped) {
  EXPECT_EQ(OneLine("a\nb\r\tc\x1b[2J\x7f"), R"(a\nb\r\tc\x1b[2J\x7f)");
  EXPECT_EQ(OneLine(absl::string_view("a\0b", 3)), R"(a\x00b)");
  EXPECT_EQ(OneLine("\xc2\x9b \xff\xc3"), R"(\xc2\x9b \xff\xc3)");
}

}  // namespace
}  // namespace penstock::common::text
