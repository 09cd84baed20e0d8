#include "client/report/run_files.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client::report {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

std::string Fixture() {
  return absl::StrCat(std::getenv("PENSTOCK_TEST_DATA"), "/run_directory");
}

std::string Command(int step, int rank, double start, double end) {
  return absl::StrCat("{\"name\":\"0F0\",\"cat\":\"F\",\"ph\":\"X\",\"pid\":0,",
                      "\"tid\":", rank, ",\"ts\":", start,
                      ",\"dur\":", end - start, ",\"args\":{\"step\":", step,
                      ",\"stage\":0,\"micro_batch\":0}}");
}

std::string Trace(const std::string& events) {
  return absl::StrCat("{\"traceEvents\":[", events, "]}");
}

TEST(RunFilesTest, ReadsARunDirectory) {
  ASSERT_OK_AND_ASSIGN(const RunFiles files, ReadRunFiles(Fixture()));
  ASSERT_TRUE(files.summary.has_value());
  EXPECT_EQ(files.summary->name, "shakespeare");
  EXPECT_EQ(files.summary->state, "SUCCEEDED");
  EXPECT_EQ(files.summary->stages.size(), 4u);
  EXPECT_EQ(files.summary->stages[0].peak_in_flight, 4);
  EXPECT_EQ(files.metrics.size(), 160u);
  EXPECT_EQ(files.metrics[19].step, 20);
  EXPECT_TRUE(files.metrics[19].validation_loss.has_value());
  EXPECT_FALSE(files.metrics[18].validation_loss.has_value());
  EXPECT_EQ(files.events.size(), 5u);
  ASSERT_EQ(files.trace.size(), 8u);
  EXPECT_EQ(files.trace[0].boxes.size(), 64u);
  ASSERT_OK(files.predicted.status());
  EXPECT_EQ(files.predicted->boxes.size(), 64u);
}

TEST(RunFilesTest, WhatIsMissingIsEmpty) {
  const tests::fakes::TempDir directory;
  ASSERT_OK_AND_ASSIGN(const RunFiles files, ReadRunFiles(directory.path()));
  EXPECT_FALSE(files.summary.has_value());
  EXPECT_THAT(files.metrics, IsEmpty());
  EXPECT_THAT(files.events, IsEmpty());
  EXPECT_THAT(files.trace, IsEmpty());
  EXPECT_THAT(files.predicted, StatusIs(absl::StatusCode::kNotFound,
                                        HasSubstr("predicted.json")));
  EXPECT_EQ(files.job_yaml, "");
}

TEST(RunFilesTest, EmptyLinesFilesAreEmpty) {
  const tests::fakes::TempDir directory;
  directory.Write("metrics.jsonl", "");
  directory.Write("events.jsonl", "\n");
  ASSERT_OK_AND_ASSIGN(const RunFiles files, ReadRunFiles(directory.path()));
  EXPECT_THAT(files.metrics, IsEmpty());
  EXPECT_THAT(files.events, IsEmpty());
}

std::string Predicted(const std::string& ranks) {
  return absl::StrCat("{\"step_seconds\":3,\"measured_step_seconds\":4,",
                      "\"realisation\":0.75,\"ranks\":[", ranks, "]}");
}

TEST(PredictedTest, ReadsTheCommandsOfEachRank) {
  ASSERT_OK_AND_ASSIGN(
      const PredictedStep step,
      ParsePredicted(
          Predicted("{\"rank\":1,\"commands\":[[\"12I345\",0.5,2]]}"), "P"));
  EXPECT_EQ(step.step_seconds, 3);
  EXPECT_EQ(step.measured_step_seconds, 4);
  EXPECT_EQ(step.realisation, 0.75);
  ASSERT_THAT(step.boxes, SizeIs(1));
  EXPECT_EQ(step.boxes[0].rank, 1);
  EXPECT_EQ(step.boxes[0].op, 'I');
  EXPECT_EQ(step.boxes[0].stage, 12);
  EXPECT_EQ(step.boxes[0].micro_batch, 345);
  EXPECT_EQ(step.boxes[0].start, 0.5);
  EXPECT_EQ(step.boxes[0].end, 2);
}

TEST(PredictedTest, WhatIsNoTimelineIsRefusedWithItsPlace) {
  const auto refused = [](const std::string& text, const char* words) {
    EXPECT_THAT(ParsePredicted(text, "P"),
                StatusIs(kDataLoss, HasSubstr(words)));
  };
  refused("", "P:1:1: ");
  refused("[]", "P");
  refused("{\"ranks\":[]}", "`step_seconds`");
  refused("{\"step_seconds\":\"3\"}", "`step_seconds`");
  refused(Predicted("{\"commands\":[]}"), "ranks[0]");
  refused(Predicted("{\"rank\":0}"), "ranks[0]");
  for (const char* command : {"3", "[]", "[\"0F0\",1]", "[\"0F0\",\"1\",2]",
                              "[\"0X0\",1,2]", "[\"F0\",1,2]", "[\"0F\",1,2]",
                              "[\"0F0x\",1,2]", "[\"0F99999999999\",1,2]"}) {
    refused(
        Predicted(absl::StrCat("{\"rank\":0,\"commands\":[", command, "]}")),
        "ranks[0]: commands[0] is not [command, start, end]");
  }
}

TEST(RunSummaryTest, ADamagedFileNamesLineAndColumn) {
  EXPECT_THAT(ParseRunSummary("{\n  \"name\": \"a\",\n  \"id\" 1\n}", "S"),
              StatusIs(kDataLoss, HasSubstr("S:3:8: not valid JSON")));
  EXPECT_THAT(ParseRunSummary("{\n  \"name\": \"a\"", "S"),
              StatusIs(kDataLoss, HasSubstr("ends too early")));
  EXPECT_THAT(ParseRunSummary("", "S"),
              StatusIs(kDataLoss, HasSubstr("S:1:1: the JSON ends too early")));
  EXPECT_THAT(ParseRunSummary("{\"name\": \"\xff\"}", "S"),
              StatusIs(kDataLoss, HasSubstr("S:1:")));
}

TEST(RunSummaryTest, AWrongTypeNamesTheMember) {
  EXPECT_THAT(ParseRunSummary("[]", "S"),
              StatusIs(kDataLoss, HasSubstr("S: not an object")));
  EXPECT_THAT(ParseRunSummary("{\"steps\": \"many\"}", "S"),
              StatusIs(kDataLoss, HasSubstr("`steps` is not an integer")));
  EXPECT_THAT(
      ParseRunSummary("{\"stages\": [{}, {\"peak_bytes\": {\"measured\": "
                      "true}}]}",
                      "S"),
      StatusIs(kDataLoss, HasSubstr("S: stages[1]: peak_bytes: `measured` is "
                                    "not a number")));
  EXPECT_THAT(
      ParseRunSummary("{\"stages\": [{\"chunks\": [{\"blocks\": [1]}]}]}", "S"),
      StatusIs(kDataLoss, HasSubstr("chunks[0]: `blocks`")));
}

TEST(RunSummaryTest, NullsAreNothing) {
  ASSERT_OK_AND_ASSIGN(
      const RunSummary summary,
      ParseRunSummary("{\"name\": \"a\", \"reason\": null, \"final_loss\": "
                      "null, \"bubble_rate\": {\"measured\": null}, "
                      "\"stages\": []}",
                      "S"));
  EXPECT_EQ(summary.reason, "");
  EXPECT_FALSE(summary.final_loss.has_value());
  EXPECT_FALSE(summary.bubble_rate.measured.has_value());
}

TEST(RunSummaryTest, LayersAreNamedShortly) {
  EXPECT_EQ(LayersText({{0, 0, 2, true, false}}), "embedding, blocks 0–1");
  EXPECT_EQ(LayersText({{3, 6, 7, false, true}}), "block 6, head");
  EXPECT_EQ(LayersText({{0, 0, 0, true, false}}), "embedding");
  EXPECT_EQ(LayersText({{0, 0, 1, true, false}, {4, 4, 5, false, false}}),
            "embedding, block 0, block 4");
  EXPECT_EQ(LayersText({}), "nothing");
}

TEST(MetricsTest, NamesTheDamagedLine) {
  EXPECT_THAT(ParseMetrics("{\"step\":1}\n\n{\"step\":2,\n", "M"),
              StatusIs(kDataLoss, HasSubstr("M:3:")));
  EXPECT_THAT(ParseMetrics("{\"step\":1}\n{\"step\":2,\"loss\":\"x\"}\n", "M"),
              StatusIs(kDataLoss, HasSubstr("M:2: `loss` is not a number")));
  EXPECT_THAT(ParseMetrics("{\"loss\":1}\n", "M"),
              StatusIs(kDataLoss, HasSubstr("M:1: `step` is missing")));
  EXPECT_THAT(ParseMetrics("{\"step\":2}\n{\"step\":2}\n", "M"),
              StatusIs(kDataLoss, HasSubstr("M:2: step 2 after step 2")));
}

TEST(MetricsTest, NullsAreNotFinite) {
  ASSERT_OK_AND_ASSIGN(
      const auto metrics,
      ParseMetrics("{\"step\":1,\"loss\":null,\"nonfinite\":[\"loss\"],"
                   "\"skipped\":true,\"grad_norm\":0.5}\n",
                   "M"));
  ASSERT_THAT(metrics, SizeIs(1));
  EXPECT_TRUE(std::isnan(metrics[0].loss));
  EXPECT_TRUE(metrics[0].nonfinite);
  EXPECT_TRUE(metrics[0].skipped);
  EXPECT_EQ(metrics[0].grad_norm, 0.5);
}

TEST(EventsTest, NamesTheDamagedLine) {
  EXPECT_THAT(ParseEvents("{\"kind\":\"A\"}\n{\"kind\":7}\n", "E"),
              StatusIs(kDataLoss, HasSubstr("E:2: `kind` is not text")));
}

TEST(TraceTest, ACommandHasRankOperationPlaceAndTimes) {
  ASSERT_OK_AND_ASSIGN(
      const auto steps,
      ParseTrace("{\"traceEvents\":[{\"name\":\"3I2\",\"cat\":\"I\",\"ph\":"
                 "\"X\",\"tid\":1,\"ts\":5,\"dur\":2,\"args\":{\"step\":7,"
                 "\"stage\":3,\"micro_batch\":2}}]}",
                 "T"));
  ASSERT_THAT(steps, SizeIs(1));
  EXPECT_EQ(steps[0].step, 7);
  ASSERT_THAT(steps[0].boxes, SizeIs(1));
  const HeatmapBox& box = steps[0].boxes[0];
  EXPECT_EQ(box.op, 'I');
  EXPECT_EQ(box.rank, 1);
  EXPECT_EQ(box.stage, 3);
  EXPECT_EQ(box.micro_batch, 2);
  EXPECT_DOUBLE_EQ(box.start, 5e-6);
  EXPECT_DOUBLE_EQ(box.end, 7e-6);
}

TEST(TraceTest, PassesOverTheNamesOfRanks) {
  ASSERT_OK_AND_ASSIGN(
      const auto steps,
      ParseTrace(Trace("{\"ph\":\"M\",\"name\":\"thread_name\",\"tid\":0}"),
                 "T"));
  EXPECT_THAT(steps, IsEmpty());
}

TEST(TraceTest, ComplainsAboutEventsThatItDoesNotKnow) {
  const std::string known = Command(1, 0, 0, 5);
  ASSERT_OK(ParseTrace(Trace(known), "T").status());
  const struct {
    const char* event;
    const char* wanted;
  } kCases[] = {
      {R"({"ph":"B","name":"0F0","tid":0,"ts":1})",
       "phase \"B\" named \"0F0\""},
      {R"({"ph":"M","name":"process_name"})",
       "phase \"M\" named \"process_name"},
      {R"({"ph":"X","name":"gc","tid":0,"ts":1,"dur":1})", "named \"gc\""},
      {R"({"name":"gc"})", "phase \"\" named \"gc\""},
      {R"({"ph":"X","args":{"step":1}})", "without `step`, `stage`"},
      {R"({"ph":"X","cat":"Q","tid":0,"ts":1,"dur":1,)"
       R"("args":{"step":1,"stage":0,"micro_batch":0}})",
       "letter of F, B, I, W"},
  };
  for (const auto& each : kCases) {
    EXPECT_THAT(ParseTrace(Trace(absl::StrCat(known, ",", each.event)), "T"),
                StatusIs(kDataLoss, AllOf(HasSubstr("T: traceEvents[1]"),
                                          HasSubstr(each.wanted))))
        << each.event;
  }
}

TEST(TraceTest, NamesTheDamagedEvent) {
  EXPECT_THAT(ParseTrace("{\"traceEvents\":[\n{\"ph\":]}", "T"),
              StatusIs(kDataLoss, HasSubstr("T:2:7")));
  EXPECT_THAT(ParseTrace("{\"traceEvents\":[7]}", "T"),
              StatusIs(kDataLoss, AllOf(HasSubstr("T: traceEvents[0]"),
                                        HasSubstr("not an object"))));
  EXPECT_THAT(
      ParseTrace("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"F\",\"tid\":0,"
                 "\"dur\":1,\"args\":{\"step\":1,\"stage\":0,"
                 "\"micro_batch\":0}}]}",
                 "T"),
      StatusIs(kDataLoss, HasSubstr("a command without `ts`")));
  EXPECT_THAT(
      ParseTrace("{\"traceEvents\":[{\"ph\":\"X\",\"tid\":0,\"ts\":1,"
                 "\"dur\":1,\"args\":{\"step\":1,\"stage\":0,"
                 "\"micro_batch\":0}}]}",
                 "T"),
      StatusIs(kDataLoss, HasSubstr("or letter of F, B, I, W in `cat`")));
  EXPECT_THAT(ParseTrace("[]", "T"),
              StatusIs(kDataLoss, HasSubstr("T: not an object")));
}

TEST(SteadyStepTest, IsTheMedianWithoutWarmUpAndTornSteps) {
  std::string events;
  const auto add = [&](int step, double length, int commands) {
    for (int i = 0; i < commands; ++i) {
      absl::StrAppend(&events, events.empty() ? "" : ",",
                      Command(step, i, 0, length));
    }
  };
  add(1, 30, 2);
  add(2, 20, 2);
  add(3, 9, 2);
  add(7, 11, 2);
  add(8, 10, 2);
  add(9, 10.5, 1);  // A rank's report is missing.
  ASSERT_OK_AND_ASSIGN(const auto steps, ParseTrace(Trace(events), "T"));
  const TracedStep* steady = SteadyStep(steps);
  ASSERT_NE(steady, nullptr);
  EXPECT_EQ(steady->step, 8);
  EXPECT_EQ(SteadyStep({}), nullptr);
}

TEST(SteadyStepTest, TakesWarmUpWhereThereIsNothingElse) {
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       ParseTrace(Trace(Command(1, 0, 0, 5)), "T"));
  ASSERT_NE(SteadyStep(steps), nullptr);
  EXPECT_EQ(SteadyStep(steps)->step, 1);
}

TEST(PipelineSummaryTest, IsWhatTheSummarySays) {
  ASSERT_OK_AND_ASSIGN(const RunFiles files, ReadRunFiles(Fixture()));
  const PipelineSummary pipeline = files.pipeline();
  EXPECT_EQ(pipeline.schedule, "1f1b");
  EXPECT_EQ(pipeline.ranks, 4);
  EXPECT_EQ(pipeline.micro_batches, 8);
  EXPECT_EQ(pipeline.chunks, 1);
  EXPECT_EQ(pipeline.formula, "(K−1)/(M+K−1)");
  ASSERT_TRUE(pipeline.formula_bubble.has_value());
  EXPECT_DOUBLE_EQ(*pipeline.formula_bubble, 3.0 / 11);
}

TEST(PipelineSummaryTest, IsNotGuessedFromJobYaml) {
  RunFiles files;
  files.job_yaml =
      "batch:\n  global: 32\n  micro_batch: 2\npipeline:\n  stages: 4\n"
      "  schedule: naive\nreplicas: 2\n";
  EXPECT_EQ(files.pipeline().schedule, "");
  EXPECT_EQ(files.pipeline().micro_batches, 0);
  EXPECT_FALSE(files.pipeline().formula_bubble.has_value());
}

TEST(PipelineSummaryTest, SaysWhatAutoFound) {
  const auto text = [](const char* pipeline) {
    return ScheduleText(
        ParseRunSummary(absl::StrCat("{\"pipeline\": ", pipeline, "}"), "S")
            ->pipeline);
  };
  EXPECT_EQ(text("{\"schedule\": \"auto\", \"found\": \"zb-v\"}"),
            "auto: zb-v");
  EXPECT_EQ(text("{\"schedule\": \"1f1b\", \"found\": null}"), "1f1b");
  EXPECT_EQ(text("null"), "");
}

TEST(PipelineSummaryTest, WithoutAClosedFormThereIsNone) {
  ASSERT_OK_AND_ASSIGN(
      const RunSummary summary,
      ParseRunSummary("{\"pipeline\": {\"schedule\": \"file:a.csv\", "
                      "\"micro_batches\": 3, \"closed_form\": null}}",
                      "S"));
  EXPECT_EQ(summary.pipeline.schedule, "file:a.csv");
  EXPECT_EQ(summary.pipeline.micro_batches, 3);
  EXPECT_FALSE(summary.pipeline.formula_bubble.has_value());
  EXPECT_THAT(
      ParseRunSummary("{\"pipeline\": {\"micro_batches\": \"3\"}}", "S"),
      StatusIs(kDataLoss, HasSubstr("pipeline: `micro_batches` is not an "
                                    "integer")));
}

}  // namespace
}  // namespace penstock::client::report
