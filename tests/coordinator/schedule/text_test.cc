#include "coordinator/schedule/text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

CsvOptions Two(int micro_batches = 1) {
  return {.ranks = 2, .micro_batches = micro_batches, .name = "orders.csv"};
}

TEST(ParseCsv, ReadsWhatPrintCsvWrites) {
  for (const Schedule& schedule : EverySchedule(3, 6)) {
    SCOPED_TRACE(schedule.name);
    ASSERT_OK_AND_ASSIGN(
        const Schedule read,
        ParseCsv(PrintCsv(schedule), {.ranks = 3, .micro_batches = 6}));
    EXPECT_EQ(read.orders, schedule.orders);
    EXPECT_EQ(read.placement, schedule.placement);
  }
}

TEST(ParseCsv, FindsTheVPlacement) {
  const Schedule v =
      *Generate("zb-v", {.ranks = 3, .chunks = 2, .micro_batches = 4});
  ASSERT_OK_AND_ASSIGN(const Schedule read,
                       ParseCsv(PrintCsv(v), {.ranks = 3, .micro_batches = 4}));
  EXPECT_EQ(read.placement, VPlacement({.ranks = 3, .chunks = 2}));
  EXPECT_EQ(read.orders, v.orders);
}

// As PyTorch writes grids: idle cells empty, rows of one length, CRLF.
TEST(ParseCsv, TakesPyTorchFilesWithIdleCellsAndCarriageReturns) {
  ASSERT_OK_AND_ASSIGN(const Schedule read,
                       ParseCsv("0F0,,,0I0,0W0\r\n,1F0, 1B0 ,,\r\n", Two()));
  EXPECT_EQ(PrintCsv(read), "0F0,0I0,0W0\n1F0,1B0\n");
}

// As spreadsheets do.
TEST(ParseCsv, SkipsAByteOrderMark) {
  ASSERT_OK_AND_ASSIGN(const Schedule read, ParseCsv("\xef\xbb\xbf"
                                                     "0F0,0I0,0W0\n1F0,1B0\n",
                                                     Two()));
  EXPECT_EQ(PrintCsv(read), "0F0,0I0,0W0\n1F0,1B0\n");
}

// F, I and W of every stage and micro-batch, for the shapes with most digits.
TEST(ParseCsv, HasRoomForTheLargestOrders) {
  for (const int64_t stages : {1, 101, 1001, 4096, 10001, 1 << 20}) {
    const int64_t micro_batches = kMaxCells / stages;
    const auto digits = [](int64_t numbers) {
      int64_t sum = 0;
      for (int64_t i = 0; i < numbers; ++i) sum += absl::StrCat(i).size();
      return sum;
    };
    const int64_t bytes =
        3 * (digits(stages) * micro_batches + stages * digits(micro_batches) +
             stages * micro_batches * 2);
    EXPECT_LE(bytes, kMaxCsvBytes / 3 * 2) << stages;
  }
}

TEST(ParseCsv, RefusesMoreThanTheLimit) {
  std::string text(kMaxCsvBytes, '#');
  EXPECT_THAT(ParseCsv(text, Two()),
              StatusIs(kInvalid, HasSubstr("the file ends after 0 rows")));
  text.push_back('#');
  EXPECT_THAT(ParseCsv(text, Two()),
              StatusIs(kInvalid,
                       "orders.csv: has 47185921 bytes; at most "
                       "47185920 (45 MiB) are allowed"));
}

TEST(ParseCsv, SkipsComments) {
  ASSERT_OK_AND_ASSIGN(const Schedule read,
                       ParseCsv("# first\n0F0,0B0\n# second\n1F0,1B0", Two()));
  EXPECT_EQ(PrintCsv(read), "0F0,0B0\n1F0,1B0\n");
}

TEST(ParseCsv, RefusesGarbageAfterACommand) {
  EXPECT_THAT(ParseCsv("0F0,0B0\n1F0garbage,1B0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:2:4: \"1F0garbage\": "
                                            "text after the command")));
}

TEST(ParseCsv, RefusesUnknownOperations) {
  EXPECT_THAT(ParseCsv("0F0,0X0\n1F0,1B0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:1:6: \"0X0\": "
                                            "expected an operation")));
  EXPECT_THAT(ParseCsv("0F0,0f0\n1F0,1B0\n", Two()),
              StatusIs(kInvalid, HasSubstr("expected an operation")));
  EXPECT_THAT(ParseCsv("0F0,0FB0\n1F0,1B0\n", Two()),
              StatusIs(kInvalid, HasSubstr("expected an operation")));
}

TEST(ParseCsv, RefusesSendsAndReceivesWithTheReason) {
  EXPECT_THAT(ParseCsv("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n", Two()),
              StatusIs(kInvalid, HasSubstr("orders.csv:1:6: \"0SEND_F0\": "
                                           "sends and receives are not "
                                           "written")));
}

TEST(ParseCsv, RefusesMissingAndOversizedNumbers) {
  EXPECT_THAT(ParseCsv("F0\n1F0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:1:1: \"F0\": expected "
                                            "a stage number")));
  EXPECT_THAT(ParseCsv("0F\n1F0\n", Two()),
              StatusIs(kInvalid, HasSubstr("expected a micro-batch number")));
  EXPECT_THAT(ParseCsv("0F00000000000000001\n1F0\n", Two()),
              StatusIs(kInvalid, HasSubstr("too long")));
  EXPECT_THAT(ParseCsv("0F01\n1F0\n", Two()),
              StatusIs(kInvalid, HasSubstr("leading zero")));
  EXPECT_THAT(ParseCsv("-1F0\n1F0\n", Two()),
              StatusIs(kInvalid, HasSubstr("expected a stage number")));
}

TEST(ParseCsv, RefusesTheWrongNumberOfRows) {
  EXPECT_THAT(ParseCsv("0F0,0B0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:2:1: the file ends "
                                            "after 1 rows, but there are 2")));
  EXPECT_THAT(ParseCsv("0F0,0B0\n1F0,1B0\n2F0,2B0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:3:1: row 3")));
  EXPECT_THAT(ParseCsv("", Two()), StatusIs(kInvalid, HasSubstr("0 rows")));
}

TEST(ParseCsv, RefusesAnEmptyLine) {
  EXPECT_THAT(ParseCsv("0F0,0B0\n\n1F0,1B0\n", Two()),
              StatusIs(kInvalid, StartsWith("orders.csv:2:1: empty line")));
}

TEST(ParseCsv, EscapesAndShortensWhatItQuotes) {
  const std::string text = "0F0" + std::string(500, '\x01') + "\n1F0\n";
  const absl::Status status = ParseCsv(text, Two()).status();
  EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr("\\x01")));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(ParseCsv, RefusesShapesThatAskForTooMuch) {
  EXPECT_THAT(ParseCsv("0F0\n9999999F0\n", Two()),
              StatusIs(kInvalid, HasSubstr("at most")));
  EXPECT_THAT(ParseCsv("0F0\n", {.ranks = 0}),
              StatusIs(kInvalid, HasSubstr("ranks is 0")));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
