#include "server/data/json_line.h"

#include <ostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/data/json_oracle.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

absl::Status Parse(absl::string_view line) {
  JsonLine out;
  return JsonLineParser().Parse(line, "text", out);
}

TEST(JsonLineTest, TokensAndLabels) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(
      R"( {"input_ids": [0, 7,2147483647], "labels":[-100 ,7, 0]} )", "text",
      out));
  EXPECT_TRUE(out.has_tokens);
  EXPECT_THAT(out.input_ids, ElementsAre(0, 7, 2147483647));
  EXPECT_TRUE(out.has_labels);
  EXPECT_THAT(out.labels, ElementsAre(-100, 7, 0));
}

TEST(JsonLineTest, LabelsMayComeFirstAndOtherKeysAreSkipped) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(
      R"({"labels":[1,2],"m":{"a":[1.5e3,null,true,"\u00e9"]},)"
      R"("attention_mask":[1,1],"input_ids":[3,4]})",
      "text", out));
  EXPECT_THAT(out.input_ids, ElementsAre(3, 4));
  EXPECT_THAT(out.labels, ElementsAre(1, 2));
}

struct MaskCase {
  std::string mask;
  std::string labels;  // "": none.
  bool matters = false;
};

TEST(JsonLineTest, AMaskThatWouldMatterIsNoticed) {
  JsonLineParser parser;
  JsonLine out;
  for (const MaskCase& each :
       {MaskCase{"[1,0,1,1]", "", true}, MaskCase{"[0,0,1,1]", "", true},
        MaskCase{"[true,true,false,true]", "", true},
        MaskCase{"[1,1,0,0]", "", true},  // Padding that is learned.
        MaskCase{"[1,0,0,0]", "[-100,5,6,7]", true},
        MaskCase{"[1,1,0,0]", "[-100,6,-100,-100]", false},
        MaskCase{"[1,1,1,0]", "", false},  // Only a label.
        MaskCase{"[1,1,1,1]", "", false}, MaskCase{"[]", "", false},
        MaskCase{"0", "", false}, MaskCase{"null", "", false},
        MaskCase{"[[0]]", "", false}, MaskCase{"{\"a\":0}", "", false}}) {
    const std::string line = absl::StrCat(
        "{\"attention_mask\":", each.mask, ",\"input_ids\":[1,5,6,7]",
        each.labels.empty() ? "" : ",\"labels\":", each.labels, "}");
    ASSERT_OK(parser.Parse(line, "text", out));
    EXPECT_EQ(out.masks, each.matters) << line;
  }
  ASSERT_OK(
      parser.Parse(R"({"text":"a","attention_mask":[0,1]})", "text", out));
  EXPECT_FALSE(out.masks);
}

TEST(JsonLineTest, LabelsAreOptional) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(R"({"input_ids":[5]})", "text", out));
  EXPECT_FALSE(out.has_labels);
  EXPECT_THAT(out.labels, IsEmpty());
}

TEST(JsonLineTest, TextIsDecoded) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(
      R"({"body":"a\n\t\"\\\/\u0041\u00e9\u20ac\ud83d\ude00 é"})", "body",
      out));
  EXPECT_FALSE(out.has_tokens);
  EXPECT_THAT(out.text,
              Optional(std::string(
                  "a\n\t\"\\/A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \xc3\xa9")));
}

TEST(JsonLineTest, InputIdsWinOverTheTextField) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(R"({"text":null,"input_ids":[1,2]})", "text",
                                   out));
  EXPECT_THAT(out.input_ids, ElementsAre(1, 2));
  EXPECT_FALSE(out.text.has_value());
}

TEST(JsonLineTest, LabelsOfATextLineAreItsOwnAffair) {
  JsonLine out;
  ASSERT_OK(JsonLineParser().Parse(R"({"labels":"positive","text":"fine"})",
                                   "text", out));
  EXPECT_THAT(out.text, Optional(std::string("fine")));
  EXPECT_FALSE(out.has_labels);
}

TEST(JsonLineTest, TheObjectIsReused) {
  JsonLine out;
  ASSERT_OK(
      JsonLineParser().Parse(R"({"input_ids":[1],"labels":[1]})", "text", out));
  ASSERT_OK(JsonLineParser().Parse(R"({"text":"x"})", "text", out));
  EXPECT_FALSE(out.has_tokens);
  EXPECT_FALSE(out.has_labels);
  ASSERT_OK(JsonLineParser().Parse(R"({})", "text", out));
  EXPECT_FALSE(out.text.has_value());
}

struct BadLine {
  const char* line;
  const char* message;

  friend void PrintTo(const BadLine& bad, std::ostream* out) {
    *out << bad.line;
  }
};
class BadLineTest : public ::testing::TestWithParam<BadLine> {};

TEST_P(BadLineTest, IsRefusedSayingWhy) {
  EXPECT_THAT(Parse(GetParam().line),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().message)))
      << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadLineTest,
    ::testing::Values(
        BadLine{"", "not valid JSON at byte 0: unexpected end of input"},
        BadLine{"[1]", "must be a JSON object, found \"[1]\""},
        BadLine{"7", "must be a JSON object, found \"7\""},
        BadLine{R"({"input_ids":[1,]})",
                "not valid JSON at byte 16: unexpected ']'; expected '[', "
                "'{', or a literal, found \"]}\""},
        BadLine{R"({"input_ids":[1 2]})",
                "byte 16: unexpected number literal; expected ']'"},
        BadLine{R"({"input_ids":[-1]})",
                "input_ids[0] must be an integer from 0 to 2147483647"},
        BadLine{R"({"input_ids":[1.0]})", "input_ids[0] must be an integer"},
        BadLine{R"({"input_ids":[1e2]})", "input_ids[0] must be an integer"},
        BadLine{R"({"input_ids":[0,2147483648]})",
                "input_ids[1] must be an integer"},
        BadLine{R"({"input_ids":[18446744073709551615]})",
                "input_ids[0] must be an integer"},
        BadLine{R"({"input_ids":[18446744073709551616]})",
                "a number that neither 64 bits nor an f64 can hold"},
        BadLine{R"({"a":1e999})",
                "a number that neither 64 bits nor an f64 can hold"},
        BadLine{R"({"input_ids":["1"]})", "input_ids[0] must be an integer"},
        BadLine{R"({"input_ids":"1"})", "input_ids must be an array"},
        BadLine{R"({"input_ids":null})", "input_ids must be an array"},
        BadLine{R"({"input_ids":[01]})", "unexpected number literal"},
        BadLine{R"({"input_ids":[1],"labels":[-1]})",
                "labels[0] must be an integer from 0 to 2147483647, or -100"},
        BadLine{R"({"input_ids":[1],"labels":[1,2]})",
                "2 labels for 1 input_ids"},
        BadLine{R"({"labels":[1,2],"input_ids":[1]})",
                "2 labels for 1 input_ids"},
        BadLine{R"({"input_ids":[1],"input_ids":[1]})",
                "\"input_ids\" is there twice"},
        BadLine{R"({"labels":[1],"labels":[1]})", "\"labels\" is there twice"},
        BadLine{R"({"text":"a","text":"b"})", "\"text\" is there twice"},
        BadLine{R"({"text":7})", "text field \"text\" must be a string"},
        BadLine{R"({"text":"a)", "byte 10: invalid string: missing closing"},
        BadLine{"{\"text\":\"a\nb\"}", "must be escaped"},
        BadLine{R"({"text":"\x"})", "forbidden character after backslash"},
        BadLine{R"({"text":"\u12g4"})", "followed by 4 hex digits"},
        BadLine{R"({"text":"\ud800"})", "surrogate U+D800..U+DBFF must be"},
        BadLine{R"({"text":"\ud800\u0041"})", "surrogate U+D800..U+DBFF"},
        BadLine{R"({"text":"\udc00"})", "surrogate U+DC00..U+DFFF must"},
        BadLine{R"({"a":"\ud83d\ud83d"})", "surrogate U+D800..U+DBFF"},
        BadLine{R"({"\udfff\ud83d":1})", "surrogate U+DC00..U+DFFF must"},
        BadLine{"{\"text\":\"\xff\"}", "byte 9: invalid string: ill-formed"},
        BadLine{"{\"text\":\"\xc0\xaf\"}", "ill-formed UTF-8"},
        BadLine{"{\"text\":\"\xed\xa0\x80\"}", "ill-formed UTF-8"},
        BadLine{"{\"text\":\"\xe2\x82\"}", "ill-formed UTF-8"},
        BadLine{R"({"text":"a"} x)", "byte 13: invalid literal, found \"x\""},
        BadLine{R"({"text":"a"}{})", "expected end of input, found \"{}\""},
        BadLine{R"({"a":1.})", "expected digit after '.'"},
        BadLine{R"({"a":1e})", "or digit after exponent"},
        BadLine{R"({"a":-})", "expected digit after '-'"},
        BadLine{R"({"a":tru})", "invalid literal"},
        BadLine{R"({"a"})", "expected ':'"},
        BadLine{R"({a:1})", "byte 1: invalid literal, found \"a:1}\""},
        BadLine{R"({"a":1)", "byte 6: unexpected end of input; expected '}'"},
        BadLine{R"({"a":})", "byte 5: unexpected '}'"}));

// A string ends a C string, which these do not.
TEST(JsonLineTest, AZeroByteIsRefused) {
  for (const size_t at : {0, 1, 6, 7}) {
    std::string line = R"({"a":1})";
    line.insert(at, 1, '\0');
    EXPECT_THAT(Parse(line), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("not valid JSON")))
        << at;
  }
}

TEST(JsonLineTest, DeepNestingIsRefusedAndWhatIsAllowedIsNot) {
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_OK(Parse(nested(kMaxJsonDepth)));
  EXPECT_THAT(Parse(nested(kMaxJsonDepth + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested deeper than 64")));
  EXPECT_THAT(Parse(nested(1000000)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested deeper than 64")));
}

TEST(JsonLineTest, AnErrorQuotesLittleOfTheLine) {
  const std::string message(
      Parse("{\"text\":7,\"" + std::string(100000, 'k') + "\"").message());
  EXPECT_LT(message.size(), 300u);
}

// Random damage to good lines: what is accepted must be what nlohmann-json
// reads, what is refused as no JSON must be no JSON for it either.
TEST(JsonLineTest, AgreesWithAnotherParserOnDamagedLines) {
  const std::string seeds[] = {
      R"({"input_ids":[1,22,333],"labels":[-100,22,333]})",
      R"({"labels":[1,2],"text":"q\u00e9\n","n":{"x":[1.5e-3,-0,true,null]}})",
      "{\"text\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\ud83d\\ude00\"}"};
  const std::string letters = "{}[]\",:\\u0123456789-+.eE tfn\xc3\xa9\xed\x7f";
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string line = seeds[random() % 3];
    for (int changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % line.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          line[at] = letter;
          break;
        case 1:
          line.insert(at, 1, letter);
          break;
        default:
          line.erase(at, 1);
      }
    }
    const OracleVerdict verdict = CompareWithOracle(line, "text");
    ASSERT_EQ(verdict.disagreement, "") << line;
    accepted += verdict.accepted ? 1 : 0;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 29500);
}

}  // namespace
}  // namespace penstock::server::data
