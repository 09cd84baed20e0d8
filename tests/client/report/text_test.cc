#include "client/report/text.h"

#include <limits>

#include "client/report/job_yaml.h"
#include "client/report/op_colors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client::report {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(TextTest, EscapesWhatMarkupMeansAndControls) {
  EXPECT_EQ(Escape("a<b>&\"c\"'d'"), "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  EXPECT_EQ(Escape("x\x1b[31m\ny\tz"), "x\xEF\xBF\xBD[31m\ny\tz");
  EXPECT_EQ(Escape(absl::string_view("\0", 1)), "\xEF\xBF\xBD");
  EXPECT_EQ(Escape("ä–µ"), "ä–µ");
}

TEST(TextTest, CoordinatesAreShort) {
  EXPECT_EQ(Coordinate(12.0), "12");
  EXPECT_EQ(Coordinate(12.34), "12.3");
  EXPECT_EQ(Coordinate(12.345, 2), "12.35");
  EXPECT_EQ(Coordinate(-0.01), "0");
  EXPECT_EQ(Coordinate(100), "100");
  EXPECT_EQ(Coordinate(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(TextTest, CountsAreGrouped) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(-123456), "-123,456");
  EXPECT_EQ(Count(1234567), "1,234,567");
}

TEST(TextTest, UnitsFitTheSize) {
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes(3.5 * 1024 * 1024 * 1024), "3.50 GiB");
  EXPECT_EQ(Seconds(0), "0 s");
  EXPECT_EQ(Seconds(42e-6), "42.0 µs");
  EXPECT_EQ(Seconds(0.109), "109 ms");
  EXPECT_EQ(Seconds(1.5), "1.50 s");
  EXPECT_EQ(Seconds(192), "3 min 12 s");
  EXPECT_EQ(Seconds(7860), "2 h 11 min");
  EXPECT_EQ(Percent(3.0 / 11), "27.3 %");
  EXPECT_EQ(ShortNumber(0.0005), "0.0005");
  EXPECT_EQ(ShortNumber(37'412), "37.4k");
  EXPECT_EQ(ShortNumber(1400), "1400");
}

TEST(TextTest, TruncatesCharactersNotBytes) {
  EXPECT_EQ(Truncated("blocks 0–1", 10), "blocks 0–1");
  EXPECT_EQ(Truncated("blocks 0–1, head", 10), "blocks 0–…");
  EXPECT_EQ(Truncated("–––", 2), "–…");
}

TEST(OpColorsTest, EveryShadeHasReadableText) {
  for (const char op : {'F', 'B', 'I', 'W', 'X'}) {
    for (int shade = 0; shade < kShades; ++shade) {
      const OpColor color = ColorOf(op, shade);
      EXPECT_EQ(color.fill.size(), 7u);
      EXPECT_GE(ContrastOf(color.fill, color.text), 4.5)
          << op << shade << " " << color.fill;
    }
  }
}

TEST(OpColorsTest, ShadesSpreadOverTheMicroBatches) {
  EXPECT_EQ(ShadeOf(0, 8), 0);
  EXPECT_EQ(ShadeOf(7, 8), kShades - 1);
  EXPECT_EQ(ShadeOf(0, 1), ShadeOf(0, 0));
  EXPECT_EQ(ShadeOf((1 << 20) - 1, 1 << 20), kShades - 1);
  EXPECT_NE(ShadeOf(1, 8), ShadeOf(2, 8));
}

TEST(JobYamlTest, ReadsTheResolvedForm) {
  EXPECT_THAT(
      ResolvedKeys("version: 1\n"
                   "name: \"a \\\"b\\\\\"\n"
                   "model:\n"
                   "  from: \"m\"\n"
                   "  # width: 64\n"
                   "pipeline:\n"
                   "  schedule: 1f1b\n"
                   "  partition: [2, 2]\n"
                   "evaluate: none\n"),
      UnorderedElementsAre(Pair("version", "1"), Pair("name", "a \"b\\"),
                           Pair("model.from", "m"), Pair("model.width", "64"),
                           Pair("pipeline.schedule", "1f1b"),
                           Pair("pipeline.partition", "[2, 2]"),
                           Pair("evaluate", "none")));
}

TEST(JobYamlTest, PassesOverWhatItDoesNotKnow) {
  EXPECT_THAT(ResolvedKeys(""), UnorderedElementsAre());
  EXPECT_THAT(ResolvedKeys("- a\n      deep: 1\n:\n\"\n{x}\n"),
              UnorderedElementsAre());
}

}  // namespace
}  // namespace penstock::client::report
