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

TEST(SummaryTableTest, ShowsPredictedBesideMeasured) {
  const auto summary = nlohmann::json::parse(R"({
    "final_loss": 1.5, "validation_loss": null, "tokens_per_second": 1000.4,
    "step_seconds": {"p50": 0.0125}, "realisation": 0.987,
    "bubble_rate": {"predicted": 0.25, "measured": 0.3},
    "stages": [{"rank": 0, "chunks": [{"stage": 0, "blocks": [0, 2],
                "embedding": true, "head": false}],
                "peak_activation_bytes": {"predicted": 1048576,
                                          "measured": 1048576},
                "peak_bytes": {"predicted": 2097152, "measured": 2097152},
                "peak_in_flight": 4, "busy_seconds": 1.25}]})");
  const std::string table = SummaryTable(summary);
  EXPECT_THAT(table, HasSubstr("loss 1.5000  validation -  1000 tokens/s  "
                               "step 12.5 ms  realisation 0.987"));
  EXPECT_THAT(table, HasSubstr("bubble rate  25.0 %     30.0 %"));
  EXPECT_THAT(table, HasSubstr("embedding, blocks 0-1"));
  EXPECT_THAT(table, HasSubstr("1.0 MiB"));
}

TEST(SummaryTableTest, AnEmptySummaryIsDashes) {
  EXPECT_THAT(SummaryTable(nlohmann::json::object()), HasSubstr("loss -"));
}

}  // namespace
}  // namespace penstock::client
