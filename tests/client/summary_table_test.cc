#include "client/summary_table.h"

#include "client/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::HasSubstr;

TEST(TextTableTest, AlignsColumnsAndEndsLinesCleanly) {
  EXPECT_EQ(FormatTable({{"NAME", "STATE"}, {"a", "RUNNING"}, {"longer", ""}}),
            "NAME    STATE\n"
            "a       RUNNING\n"
            "longer\n");
}

TEST(TextTableTest, CountsCharactersAndNotTheirBytes) {
  EXPECT_EQ(FormatTable({{"0–1", "µs"}, {"abcd", "x"}}),
            "0–1   µs\n"
            "abcd  x\n");
}

TEST(SummaryTableTest, ShowsPredictedBesideMeasured) {
  const report::RunSummary summary = {
      .final_loss = 1.5,
      .tokens_per_second = 1000.4,
      .step_seconds_p50 = 0.0125,
      .bubble_rate = {.predicted = 0.25, .measured = 0.3},
      .realisation = 0.987,
      .stages = {
          {.rank = 0,
           .chunks = {{.end_block = 2, .embedding = true}},
           .peak_bytes = {.predicted = 2097152, .measured = 2097152},
           .peak_activation_bytes = {.predicted = 1048576, .measured = 1048576},
           .peak_in_flight = 4,
           .busy_seconds = 1.25},
          {.rank = 1,
           .chunks = {{.first_block = 2, .end_block = 3, .head = true}},
           .peak_bytes = {.predicted = 512}}}};
  const std::string table = SummaryTable(summary);
  EXPECT_THAT(table, HasSubstr("loss 1.5000  validation -  1000 tokens/s  "
                               "step 12.5 ms  realisation 0.987\n"));
  EXPECT_THAT(table, HasSubstr("bubble rate  25.0 %     30.0 %\n"));
  EXPECT_THAT(table, HasSubstr("\n0      embedding, blocks 0–1  1.00 MiB"));
  EXPECT_THAT(table, HasSubstr("2.00 MiB       2.00 MiB  4          1.25 s\n"));
  // What a rank never said.
  EXPECT_THAT(table, HasSubstr("\n1      block 2, head          -  "));
  EXPECT_THAT(table, HasSubstr("512 B          -         -          -\n"));
}

TEST(SummaryTableTest, SaysWhatAutoFoundAndNoOtherSchedule) {
  EXPECT_THAT(SummaryTable({.pipeline = {.schedule = "auto", .found = "zb-v"}}),
              HasSubstr("realisation -\nschedule auto: zb-v\n\n"));
  EXPECT_THAT(SummaryTable({.pipeline = {.schedule = "1f1b"}}),
              HasSubstr("realisation -\n\n"));
}

TEST(SummaryTableTest, AnEmptySummaryIsDashes) {
  EXPECT_THAT(SummaryTable({}), HasSubstr("loss -  validation -  - tokens/s"));
}

}  // namespace
}  // namespace penstock::client
