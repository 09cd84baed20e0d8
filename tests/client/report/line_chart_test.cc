#include "client/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "client/report/axis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/report/markup.h"

namespace penstock::client::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string Draw(std::vector<Point> points, LineChartOptions options = {}) {
  return LineChartSvg(
      {{.name = "train", .style = "c-blue", .points = std::move(points)}},
      options);
}

TEST(AxisTest, LinearTicksAreRoundNumbersInside) {
  EXPECT_THAT(LinearTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(LinearTicks(1.4, 5.6, 4), ElementsAre(2, 4));
  EXPECT_THAT(LinearTicks(-1, 1, 2), ElementsAre(-1, 0, 1));
}

TEST(AxisTest, LinearTicksOfNoRangeAreNone) {
  EXPECT_THAT(LinearTicks(1, 1, 5), IsEmpty());
  EXPECT_THAT(LinearTicks(2, 1, 5), IsEmpty());
  EXPECT_THAT(LinearTicks(kNan, 1, 5), IsEmpty());
  EXPECT_THAT(LinearTicks(0, kInf, 5), IsEmpty());
}

TEST(AxisTest, NeighbouringDoublesHaveFewDistinctTicks) {
  const auto ticks = LinearTicks(1e300, std::nextafter(1e300, kInf), 5);
  EXPECT_LE(ticks.size(), 3u);
  EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
}

TEST(AxisTest, LogTicksArePowersAndTheirParts) {
  EXPECT_THAT(LogTicks(1, 100), ElementsAre(1, 2, 5, 10, 20, 50, 100));
  EXPECT_THAT(LogTicks(0.5, 2000), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(LogTicks(0, 10), IsEmpty());
  EXPECT_THAT(LogTicks(-1, 10), IsEmpty());
}

TEST(SeriesTest, FewPointsStayAsTheyAre) {
  const auto buckets = Thin({{1, 5}, {2, 7}}, 10);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[1].x, 2);
  EXPECT_EQ(buckets[1].mean, 7);
  EXPECT_EQ(buckets[1].count, 1);
}

TEST(SeriesTest, ManyPointsKeepEverySpike) {
  std::vector<Point> points;
  for (int i = 0; i < 10'000; ++i) {
    points.push_back({static_cast<double>(i), 1});
  }
  points[5'432].y = 100;
  const auto buckets = Thin(points, 300);
  EXPECT_LE(buckets.size(), 300u);
  double high = 0;
  int count = 0;
  for (const Bucket& bucket : buckets) {
    high = std::max(high, bucket.high);
    EXPECT_EQ(bucket.low, 1);
    count += bucket.count;
  }
  EXPECT_EQ(high, 100);
  EXPECT_EQ(count, 10'000);
}

TEST(SeriesTest, ValuesThatAreNotFiniteAreGaps) {
  const auto buckets = Thin({{1, kNan}, {2, kInf}, {3, 4}, {4, kNan}}, 2);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].count, 0);
  EXPECT_TRUE(std::isnan(buckets[0].mean));
  EXPECT_EQ(buckets[1].mean, 4);
}

TEST(LineChartTest, IsLogarithmicOnlyForALargeRange) {
  EXPECT_THAT(Draw({{1, 5.5}, {2, 1.6}}), Not(HasSubstr("log scale")));
  EXPECT_THAT(Draw({{1, 50}, {2, 1.6}}), HasSubstr("log scale"));
  EXPECT_THAT(Draw({{1, 50}, {2, 0}}), Not(HasSubstr("log scale")));
  EXPECT_THAT(
      Draw({{1, 50}, {2, 1.6}}, {.scale = LineChartOptions::Scale::kFromZero}),
      Not(HasSubstr("log scale")));
}

TEST(LineChartTest, TheLastFiniteValueStandsAtTheCurvesEnd) {
  EXPECT_THAT(Draw({{1, 3}, {2, 2}, {3, kNan}}), HasSubstr(">train 2</text>"));
}

TEST(LineChartTest, ACurveIsBrokenWhereItIsNotFinite) {
  const std::string svg =
      Draw({{1, 3}, {2, 2}, {3, kNan}, {4, 2}, {5, 3}, {6, kInf}, {7, 1}});
  const size_t line = svg.find("class=\"line\"");
  ASSERT_NE(line, std::string::npos);
  const std::string path = svg.substr(line, svg.find("/>", line) - line);
  EXPECT_EQ(CountOf(path, "M"), 3);
  // The last point has no neighbour: only a dot shows it.
  EXPECT_EQ(CountOf(svg, "<circle"), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChartTest, WithoutAFiniteValueItSaysSo) {
  EXPECT_THAT(Draw({}), HasSubstr("no values"));
  EXPECT_THAT(Draw({{1, kNan}}), HasSubstr("no values"));
}

TEST(LineChartTest, OnePointAndConstantsAreDrawn) {
  EXPECT_EQ(CountOf(Draw({{1, 5}}), "<circle"), 1);
  EXPECT_EQ(MarkupFault(Draw({{1, 5}})), "");
  EXPECT_EQ(MarkupFault(Draw({{1, 0}, {2, 0}})), "");
}

TEST(LineChartTest, AMillionStepsStaySmall) {
  std::vector<Point> points;
  for (int i = 0; i < 1'000'000; ++i) {
    points.push_back({static_cast<double>(i), std::sin(i) + 2});
  }
  LineChartOptions options;
  for (int i = 0; i < 100'000; ++i) options.marks.push_back(i);
  const std::string svg = Draw(std::move(points), options);
  EXPECT_LT(svg.size(), 120'000u);
  EXPECT_THAT(svg, HasSubstr("class=\"band\""));
  EXPECT_EQ(MarkupFault(svg), "");
}

TEST(LineChartTest, NamesAreEscaped) {
  const std::string svg =
      LineChartSvg({{.name = "<b>", .style = "c-blue", .points = {{1, 1}}}},
                   {.label = "\"><script>"});
  EXPECT_EQ(MarkupFault(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt; 1"));
}

}  // namespace
}  // namespace penstock::client::report
