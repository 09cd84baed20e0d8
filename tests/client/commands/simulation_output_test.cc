#include "client/commands/simulation_output.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client::commands {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two ranks of two chunks.
v1::SimulateScheduleResponse Answer() {
  v1::SimulateScheduleResponse response;
  response.set_makespan(20);
  response.set_bubble_rate(0.25);
  response.set_span_bubble_rate(0.125);
  response.set_chunks(2);
  response.set_placement("V");
  for (int r = 0; r < 2; ++r) {
    v1::SimulatedRank& rank = *response.add_ranks();
    rank.set_busy(15);
    rank.set_idle(5);
    rank.set_first_start(r);
    rank.set_last_end(20 - r);
    rank.set_peak_in_flight(3 - r);
    rank.set_peak_activations(1.5 - 0.5 * r);
    v1::SimulatedCommand& command = *rank.add_commands();
    command.set_op(v1::OP_BACKWARD_INPUT);
    command.set_stage(r);
    command.set_start(r);
    command.set_end(20 - r);
  }
  v1::SimulatedEdge& edge = *response.add_edges();
  edge.set_from(0);
  edge.set_to(1);
  edge.set_capacity(4);
  edge.mutable_edge()->set_source_stage(2);
  edge.mutable_edge()->set_target_stage(3);
  response.add_critical_path("0F0");
  return response;
}

void AddSaving(const char* what, v1::SimulateScheduleResponse& response) {
  v1::CriticalSaving& saving = *response.add_savings();
  saving.set_what(what);
  saving.set_count(7);
  saving.set_on_path(5);
  saving.set_share(0.25);
  saving.set_saved(0.025);
}

TEST(SimulationTableTest, NamesBothBubblesAndSaysWhatRanksHold) {
  EXPECT_EQ(SimulationTable(Answer()),
            "makespan 20  bubble rate 25.00 %  span bubble 12.50 %\n"
            "V placement, chunks a rank: 2\n"
            "\n"
            "RANK  BUSY  IDLE  FIRST START  LAST END  PEAK IN FLIGHT (CHUNKS)"
            "  (STAGES)\n"
            "0     15    5     0            20        3                      "
            "  1.5\n"
            "1     15    5     1            19        2                      "
            "  1\n"
            "\n"
            "EDGE  FROM RANK  TO RANK  CAPACITY\n"
            "2->3  0          1        4\n");
}

TEST(SimulationOutputTest, SaysWhatAutoFound) {
  v1::SimulateScheduleResponse response = Answer();
  EXPECT_TRUE(
      nlohmann::json::parse(SimulationJson(response))["found"].is_null());
  response.set_found("zb-h2");
  EXPECT_THAT(SimulationTable(response),
              HasSubstr("; auto found this order: zb-h2\n"));
  EXPECT_EQ(nlohmann::json::parse(SimulationJson(response))["found"], "zb-h2");
  v1::SimulateScheduleRequest request;
  request.set_schedule("auto");
  request.set_stages(2);
  request.set_micro_batches(5);
  EXPECT_THAT(SimulationSvg(request, response),
              HasSubstr(">auto (zb-h2), K = 2, v = 2, M = 5</text>"));
}

TEST(SimulationTableTest, HasTheTextbooksFormulaWhereThereIsOne) {
  EXPECT_THAT(SimulationTable(Answer()), Not(HasSubstr("textbook")));
  v1::SimulateScheduleResponse response = Answer();
  response.mutable_closed_form()->set_formula("1 − 1/K");
  response.mutable_closed_form()->set_bubble_rate(0.5);
  EXPECT_THAT(SimulationTable(response),
              HasSubstr("\ntextbook bubble rate 1 − 1/K = 50.00 % (equal"));
}

TEST(SimulationTableTest, ShowsTheLargestSavingsAndCountsTheOthers) {
  v1::SimulateScheduleResponse response = Answer();
  response.set_chunks(1);
  AddSaving("F of stage 3", response);
  AddSaving("activation 0->1", response);
  response.mutable_savings(1)->clear_saved();
  EXPECT_THAT(
      SimulationTable(response),
      HasSubstr("CRITICAL PATH    COUNT  TIME  SHARE    1 % FASTER SAVES\n"
                "F of stage 3     7      5     25.00 %  0.025 (0.125 %)\n"
                "activation 0->1  7      5     25.00 %  not computed\n"));
  EXPECT_THAT(SimulationTable(response), Not(HasSubstr("more parts")));
  for (int i = 0; i < 10; ++i) AddSaving("W of stage 4", response);
  EXPECT_THAT(SimulationTable(response),
              HasSubstr("and 2 more parts; -o json has them all\n"));
}

TEST(SimulationJsonTest, HasEveryNumberOfTheAnswer) {
  v1::SimulateScheduleResponse response = Answer();
  AddSaving("F of stage 3", response);
  AddSaving("a\xff", response);
  response.mutable_savings(1)->clear_saved();
  const auto json = nlohmann::json::parse(SimulationJson(response));
  EXPECT_EQ(json["makespan"], 20);
  EXPECT_EQ(json["bubble_rate"], 0.25);
  EXPECT_EQ(json["span_bubble_rate"], 0.125);
  EXPECT_TRUE(json["closed_form"].is_null());
  EXPECT_EQ(json["chunks"], 2);
  EXPECT_EQ(json["placement"], "V");
  EXPECT_EQ(json["ranks"][0], nlohmann::json({{"busy", 15.0},
                                              {"idle", 5.0},
                                              {"first_start", 0.0},
                                              {"last_end", 20.0},
                                              {"peak_in_flight", 3},
                                              {"peak_activations", 1.5}}));
  EXPECT_EQ(json["edges"][0], nlohmann::json({{"from", 0},
                                              {"to", 1},
                                              {"capacity", 4},
                                              {"source_stage", 2},
                                              {"target_stage", 3}}));
  EXPECT_EQ(json["critical_path"], nlohmann::json({"0F0"}));
  EXPECT_EQ(json["savings"][0], nlohmann::json({{"what", "F of stage 3"},
                                                {"count", 7},
                                                {"on_path", 5.0},
                                                {"share", 0.25},
                                                {"saved", 0.025}}));
  EXPECT_TRUE(json["savings"][1]["saved"].is_null());
}

TEST(SimulationSvgTest, SaysWhatWasAskedAndWhatCameOut) {
  v1::SimulateScheduleRequest request;
  request.set_schedule("zb-v");
  request.set_stages(2);
  request.set_micro_batches(5);
  const std::string svg = SimulationSvg(request, Answer());
  EXPECT_THAT(svg, HasSubstr(">zb-v, K = 2, v = 2, M = 5</text>"));
  EXPECT_THAT(svg, HasSubstr("makespan 20, bubble rate 25.00 %, span bubble "
                             "12.50 %; most activations held, in stages&#39;: "
                             "1.5"));
  EXPECT_THAT(svg, HasSubstr("<title>1I0: input gradient of micro-batch 0"));
}

}  // namespace
}  // namespace penstock::client::commands
