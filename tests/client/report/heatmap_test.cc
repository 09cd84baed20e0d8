// Golden file: tests/testdata/report/heatmap.svg. To write it anew after a
// change that is meant:
//
//   PENSTOCK_REGENERATE_GOLDEN=1 ctest --preset dev -R client_report
//
// then look at it in a browser and read the difference.
#include "client/report/heatmap.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/report/markup.h"

namespace penstock::client::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 1F1B of two ranks and two micro-batches; a time unit is 10 ms.
std::vector<HeatmapBox> SmallStep() {
  return {{0, 'F', 0, 0, .00, .01}, {0, 'F', 0, 1, .01, .02},
          {1, 'F', 1, 0, .01, .02}, {1, 'B', 1, 0, .02, .04},
          {0, 'B', 0, 0, .04, .06}, {1, 'F', 1, 1, .04, .05},
          {1, 'B', 1, 1, .05, .07}, {0, 'B', 0, 1, .07, .09}};
}

std::vector<HeatmapBox> ManyBoxes(int ranks, int micro_batches) {
  std::vector<HeatmapBox> boxes;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int m = 0; m < micro_batches; ++m) {
      const double at = 3 * m + rank;
      boxes.push_back({rank, 'F', rank, m, at, at + 1});
      boxes.push_back({rank, 'B', rank, m, at + 1, at + 3});
    }
  }
  return boxes;
}

TEST(HeatmapTest, EqualsItsGoldenFile) {
  const std::string svg = HeatmapSvg(
      SmallStep(),
      {.title = "1F1B, K = 2, M = 2",
       .subtitle = "bubble 33.3 %",
       .rows = {{"rank 0", "embedding, block 0"}, {"rank 1", "block 1, head"}},
       .frame = HeatmapOptions::Frame::kFile,
       .step_end = .096});
  const std::string path =
      absl::StrCat(std::getenv("PENSTOCK_TEST_DATA"), "/report/heatmap.svg");
  if (std::getenv("PENSTOCK_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << svg;
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(svg, std::string((std::istreambuf_iterator<char>(file)), {}));
  EXPECT_EQ(MarkupFault(svg), "");
}

TEST(HeatmapTest, DrawsABoxANumberAndATooltipForEachCommand) {
  const std::string svg = HeatmapSvg(SmallStep(), {});
  EXPECT_EQ(CountOf(svg, "</title></rect>"), 8);
  EXPECT_THAT(svg, HasSubstr("<title>1B0: backward of micro-batch 0, stage 1, "
                             "rank 1; 20.0 ms from 20.0 ms</title>"));
  EXPECT_EQ(CountOf(svg, "class=\"idle\""), 3);  // Two rows and the legend.
  // Rank 0 works 60 of 90 ms.
  EXPECT_THAT(svg, HasSubstr(">67 %</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("barrier")));
}

TEST(HeatmapTest, MarksWhatLiesBetweenTheLastCommandAndTheStepsEnd) {
  const std::string svg = HeatmapSvg(SmallStep(), {.step_end = .1});
  EXPECT_THAT(svg, HasSubstr("barrier + apply"));
  EXPECT_THAT(svg, HasSubstr("<title>10.0 ms of the step lie outside"));
  // The busy share is that of the whole step.
  EXPECT_THAT(svg, HasSubstr(">60 %</text>"));
}

TEST(HeatmapTest, AStepEndBeforeTheLastCommandIsIgnored) {
  EXPECT_EQ(HeatmapSvg(SmallStep(), {.step_end = .05}),
            HeatmapSvg(SmallStep(), {}));
}

TEST(HeatmapTest, ALongerAxisLeavesTheStepAsLongAsItIs) {
  const std::string svg = HeatmapSvg(SmallStep(), {.least_span = .18});
  // The step takes 90 ms, half of the axis; the shares are of the step.
  EXPECT_THAT(svg, HasSubstr(">180</text>"));
  EXPECT_THAT(svg, HasSubstr(">67 %</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("barrier")));
  EXPECT_EQ(HeatmapSvg(SmallStep(), {.least_span = .05}),
            HeatmapSvg(SmallStep(), {}));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(HeatmapSvg(SmallStep(), {.least_span = inf}),
            HeatmapSvg(SmallStep(), {}));
}

TEST(HeatmapTest, TextIsMeasuredInCharacters) {
  const auto with = [](const std::string& detail) {
    return HeatmapSvg(SmallStep(), {.rows = {{"rank 0", detail}}});
  };
  EXPECT_EQ(absl::StrReplaceAll(with("embedding, blocks 10–11"), {{"–", "-"}}),
            with("embedding, blocks 10-11"));
}

TEST(HeatmapTest, LaterChunksOfARankAreUnderlined) {
  EXPECT_THAT(HeatmapSvg(SmallStep(), {}), Not(HasSubstr("underlined")));
  std::vector<HeatmapBox> boxes = SmallStep();
  boxes.push_back({0, 'F', 2, 0, .09, .1});
  const std::string two = HeatmapSvg(boxes, {});
  EXPECT_THAT(two, HasSubstr("underlined: the second chunk of the rank"));
  // Two rows of 44 pixels: 4 for the second chunk, 8 for the third.
  EXPECT_EQ(CountOf(two, "v4h"), 1);
  EXPECT_EQ(MarkupFault(two), "");
  boxes.push_back({0, 'F', 4, 0, .1, .11});
  const std::string three = HeatmapSvg(boxes, {});
  EXPECT_THAT(three, HasSubstr("the thicker the later"));
  EXPECT_EQ(CountOf(three, "v4h"), 1);
  EXPECT_EQ(CountOf(three, "v7.9h"), 1);
  EXPECT_EQ(MarkupFault(three), "");
}

TEST(HeatmapTest, OnlyAFileHasABackgroundAndASize) {
  const std::string in_page = HeatmapSvg(SmallStep(), {});
  EXPECT_THAT(in_page, Not(HasSubstr("class=\"paper\"")));
  EXPECT_THAT(in_page, HasSubstr("viewBox=\"0 0 1120 "));
  const std::string file =
      HeatmapSvg(SmallStep(), {.frame = HeatmapOptions::Frame::kFile});
  EXPECT_THAT(file, HasSubstr("class=\"paper\""));
  EXPECT_THAT(file, HasSubstr("viewBox=\"-20 -20 1160 "));
  EXPECT_THAT(file, HasSubstr("width=\"1160\""));
  EXPECT_EQ(MarkupFault(file), "");
}

TEST(HeatmapTest, AbstractTimesHaveNoUnit) {
  const std::string svg =
      HeatmapSvg(ManyBoxes(2, 2), {.unit = HeatmapOptions::Unit::kAbstract});
  EXPECT_THAT(svg, Not(HasSubstr(">ms<")));
  EXPECT_THAT(svg, HasSubstr(">time</text>"));
  EXPECT_THAT(svg, HasSubstr("2 from 1</title>"));
}

TEST(HeatmapTest, TextIsEscaped) {
  const std::string hostile = "</svg><script>alert(\"1\")&'";
  const std::string svg = HeatmapSvg(
      SmallStep(),
      {.title = hostile, .subtitle = hostile, .rows = {{hostile, hostile}}});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_EQ(MarkupFault(svg), "");
}

TEST(HeatmapTest, BoxesThatCannotBeDrawnAreLeftOut) {
  std::vector<HeatmapBox> boxes = SmallStep();
  const double inf = std::numeric_limits<double>::infinity();
  boxes.push_back({-1, 'F', 0, 0, 0, 1});
  boxes.push_back({std::numeric_limits<int>::max(), 'F', 0, 0, 0, 1});
  boxes.push_back({0, 'F', 0, -1, 0, 1});
  boxes.push_back({0, 'F', 0, std::numeric_limits<int>::max(), 0, 1});
  boxes.push_back({0, 'F', 0, 0, 2, 1});
  boxes.push_back({0, 'F', 0, 0, 0, inf});
  boxes.push_back({0, 'F', 0, 0, -inf, 0});
  EXPECT_EQ(HeatmapSvg(boxes, {}), HeatmapSvg(SmallStep(), {}));
}

TEST(HeatmapTest, AnUnknownOperationIsGreyAndNeverMarkup) {
  const std::string svg = HeatmapSvg({{0, '"', 0, 0, 0, 1}}, {});
  EXPECT_THAT(svg, HasSubstr("class=\"X"));
  EXPECT_EQ(MarkupFault(svg), "");
}

TEST(HeatmapTest, NoBoxesGiveAPictureThatSaysSo) {
  const std::string svg = HeatmapSvg({}, {.title = "empty"});
  EXPECT_THAT(svg, HasSubstr("No command was timed."));
  EXPECT_EQ(MarkupFault(svg), "");
}

TEST(HeatmapTest, AStepOfNoLengthIsDrawn) {
  EXPECT_EQ(MarkupFault(HeatmapSvg({{0, 'F', 0, 0, 1, 1}}, {})), "");
}

TEST(HeatmapTest, AnyNumberOfCommandsStaysSmall) {
  const std::string eight = HeatmapSvg(ManyBoxes(8, 64), {});
  EXPECT_EQ(CountOf(eight, "</title></rect>"), 1024);
  EXPECT_LT(eight.size(), 300'000u);
  const std::string sixteen = HeatmapSvg(ManyBoxes(16, 256), {});
  EXPECT_EQ(CountOf(sixteen, "</title></rect>"), 0);
  EXPECT_THAT(sixteen, Not(HasSubstr("too many")));
  const std::string huge = HeatmapSvg(ManyBoxes(64, 1024), {});
  EXPECT_THAT(huge, HasSubstr("the step has too many commands"));
  EXPECT_LT(huge.size(), 600'000u);
  // A file of its own may be larger.
  const auto kFile = HeatmapOptions::Frame::kFile;
  EXPECT_THAT(HeatmapSvg(ManyBoxes(64, 128), {.frame = kFile}),
              Not(HasSubstr("too many")));
  EXPECT_THAT(HeatmapSvg(ManyBoxes(64, 1024), {.frame = kFile}),
              HasSubstr("the step has too many commands"));
  EXPECT_EQ(MarkupFault(huge), "");
}

}  // namespace
}  // namespace penstock::client::report
