#include "client/report/report.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/report/page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/report/markup.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client::report {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::string_view kNames[] = {"job.yaml",      "summary.json",
                                        "metrics.jsonl", "events.jsonl",
                                        "trace.json",    "predicted.json"};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

std::string FixtureFile(absl::string_view name) {
  return Read(
      absl::StrCat(std::getenv("PENSTOCK_TEST_DATA"), "/run_directory/", name));
}

// A run directory with the fixture's files.
class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    for (const absl::string_view name : kNames) {
      directory_.Write(name, FixtureFile(name));
    }
  }
  std::string Html() const { return Read(directory_.Path("report.html")); }

  const tests::fakes::TempDir directory_;
};

TEST_F(ReportTest, ShowsEverythingOfARun) {
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  EXPECT_THAT(html, StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(MarkupFault(html), "");
  EXPECT_LT(html.size(), 120'000u);
  // The heatmap comes first of all pictures.
  EXPECT_LT(html.find("svg\" class=\"hm\""), html.find("class=\"chart\""));
  // 64 commands, predicted and measured, and the barrier.
  EXPECT_EQ(CountOf(html, "</title></rect>"), 2 * 64 + 1);
  for (const char* part :
       {"<b>1F1B</b> · K = 4 ranks · M = 8 micro-batches",
        "bubble of this step", "plan predicted",
        "(K−1)/(M+K−1)</span><b>27.3 %</b>", "rank 0: embedding, blocks 0–1",
        "barrier + apply", "<h2>Loss</h2>", ">validation 1.7",
        "<h3>Gradient norm", "<h3>Speed", "<h2>Predicted and measured</h2>",
        "<h2>Stages and their memory</h2>",
        "title=\"the same to the byte\">exact</td>", "<h2>Events</h2>",
        "cpu/avx2/1/6f2b9c04", "4 × cpu", "gpt2, 8 layers, width 256",
        "job.yaml with every value"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("What went wrong")));
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("report.html.tmp")));
}

TEST_F(ReportTest, SaysWhatAutoFound) {
  directory_.Write(
      "summary.json",
      absl::StrReplaceAll(FixtureFile("summary.json"),
                          {{"\"schedule\": \"1f1b\"",
                            "\"schedule\": \"auto\", \"found\": \"zb-v\""}}));
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), HasSubstr("<b>AUTO: ZB-V</b> · K = 4 ranks"));
  EXPECT_THAT(Html(), HasSubstr("auto: zb-v, 4 ranks"));
}

TEST_F(ReportTest, PredictedStandsAboveMeasuredOnOneScale) {
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  const size_t predicted = html.find("<h3>Predicted</h3>");
  const size_t measured = html.find("<h3>Measured</h3>");
  ASSERT_NE(measured, std::string::npos);
  EXPECT_LT(predicted, measured);
  // The axis below each has the same marks at the same places.
  const auto axis = [&](size_t from) {
    std::string marks;
    const std::string picture =
        html.substr(from, html.find("</svg>", from) - from);
    for (size_t at = picture.find("class=\"grid\""); at != std::string::npos;
         at = picture.find("class=\"grid\"", at + 1)) {
      marks += picture.substr(at, picture.find("</text>", at) - at);
    }
    return marks;
  };
  EXPECT_NE(axis(measured), "");
  EXPECT_EQ(axis(predicted), axis(measured));
  // Nothing is defined twice.
  EXPECT_EQ(CountOf(html, "id=\"hm-idle\""), 1);
  EXPECT_EQ(CountOf(html, "id=\"hm2-idle\""), 1);
  // 0.10687 s of 0.10944 s.
  EXPECT_THAT(html, HasSubstr("Realisation = simulated / measured = <b>0.976"));
  EXPECT_THAT(html, HasSubstr("behind the last one (barrier and apply)"));
}

// Predicted: 0F0 [0, 1) 0B0 [1, 3). Measured: 0F0 [10, 11) 0B0 [11.5, 14), and
// the step is over after 4.5 s.
TEST_F(ReportTest, TheDifferenceIsSaidByItsPlace) {
  directory_.Write(
      "predicted.json",
      "{\"step_seconds\":3,\"measured_step_seconds\":4,\"realisation\":0.75,"
      "\"ranks\":[{\"rank\":0,\"commands\":[[\"0F0\",0,1],[\"0B0\",1,3]]}]}");
  const auto command = [](char op, int start, int length) {
    return absl::StrCat("{\"ph\":\"X\",\"cat\":\"", std::string(1, op),
                        "\",\"tid\":0,\"ts\":", start, "00000,\"dur\":", length,
                        "00000,\"args\":{\"step\":1,\"stage\":0,"
                        "\"micro_batch\":0}}");
  };
  directory_.Write("trace.json",
                   absl::StrCat("{\"traceEvents\":[", command('F', 100, 10),
                                ",", command('B', 115, 25), "]}"));
  directory_.Write("metrics.jsonl", "{\"step\":1,\"step_seconds\":4.5}\n");
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  EXPECT_THAT(html, HasSubstr("each stage's commands, 3.00 s; the median step "
                              "took 4.00 s. Realisation = simulated / measured "
                              "= <b>0.750</b>. This step took 4.50 s: of the "
                              "difference to the simulated one 1.00 s lie "
                              "between its commands"));
  EXPECT_THAT(html, HasSubstr("and 500 ms behind the last one"));
}

TEST_F(ReportTest, WithoutAPredictedTimelineTheStepIsShownAndTheReasonSaid) {
  std::filesystem::remove(directory_.Path("predicted.json"));
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_EQ(CountOf(Html(), "</title></rect>"), 65);
  EXPECT_THAT(Html(), HasSubstr("no predicted timeline to compare with: "
                                "predicted.json is not there.</p>"));
  directory_.Write("predicted.json", "{\"step_seconds\": 3");
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_EQ(CountOf(Html(), "</title></rect>"), 65);
  EXPECT_THAT(Html(),
              HasSubstr("predicted.json:1:19: the JSON ends too early"));
  directory_.Write("predicted.json",
                   "{\"step_seconds\":3,\"measured_step_seconds\":4,"
                   "\"realisation\":0.75,\"ranks\":[]}");
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), HasSubstr("predicted.json has no command.</p>"));
}

TEST_F(ReportTest, LoadsNothingAndRunsNothing) {
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* part : {"<script", "<link", "<img", "<iframe", "@import",
                           "src=", "href=", "onload", "javascript:"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
  // The only address is the name of SVG's vocabulary.
  EXPECT_EQ(CountOf(html, "://"), CountOf(html, "http://www.w3.org/2000/svg"));
}

TEST_F(ReportTest, AReportIsReplaced) {
  directory_.Write("report.html", "old");
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), StartsWith("<!DOCTYPE html>"));
}

TEST_F(ReportTest, EachFileMayBeMissing) {
  for (const absl::string_view name : kNames) {
    SCOPED_TRACE(name);
    std::filesystem::remove(directory_.Path(name));
    ASSERT_OK(WriteReport(directory_.path()));
    EXPECT_EQ(MarkupFault(Html()), "");
    directory_.Write(name, FixtureFile(name));
  }
}

TEST(EmptyReportTest, AJobWithoutAnyFileSaysSo) {
  const tests::fakes::TempDir directory;
  ASSERT_OK(WriteReport(directory.path()));
  const std::string html = Read(directory.Path("report.html"));
  EXPECT_THAT(html, HasSubstr("There is no summary.json here"));
  EXPECT_THAT(html, HasSubstr("No step was timed"));
  EXPECT_EQ(MarkupFault(html), "");
}

TEST(EmptyReportTest, WithoutTheFolderItIsNotFound) {
  const tests::fakes::TempDir directory;
  EXPECT_THAT(WriteReport(directory.Path("nowhere")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("report.html.tmp: cannot be written")));
}

TEST_F(ReportTest, ADamagedFileIsNamedAndNothingIsWritten) {
  directory_.Write("metrics.jsonl",
                   FixtureFile("metrics.jsonl").substr(0, 1000));
  EXPECT_THAT(WriteReport(directory_.path()),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr(absl::StrCat(directory_.Path("metrics.jsonl"),
                                              ":4:"))));
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("report.html")));
}

TEST_F(ReportTest, AnyDamageIsAnErrorOrAWellFormedPage) {
  std::mt19937 random(7);
  int refused = 0, drawn = 0;
  for (int round = 0; round < 150; ++round) {
    const absl::string_view name = kNames[round % 6];
    std::string bytes = FixtureFile(name);
    for (int flips = 0; flips < 3; ++flips) {
      const char junk[] = "<>\"&0-9e[]{},:nX\n\x01";
      bytes[random() % bytes.size()] = junk[random() % (sizeof(junk) - 1)];
    }
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    directory_.Write(name, bytes);
    const absl::Status status = WriteReport(directory_.path());
    if (status.ok()) {
      EXPECT_EQ(MarkupFault(Html()), "") << "round " << round;
      ++drawn;
    } else {
      EXPECT_NE(name, "predicted.json");
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr(directory_.Path(name))));
      ++refused;
    }
    directory_.Write(name, FixtureFile(name));
  }
  EXPECT_GT(refused, 30);
  EXPECT_GT(drawn, 30);
}

TEST_F(ReportTest, EveryTextOfTheFilesIsEscaped) {
  // Every text value becomes hostile.
  const std::string hostile = "</pre></title><script>alert(1)</script>\\\"'&";
  for (const absl::string_view name : {"summary.json", "events.jsonl"}) {
    std::string text = FixtureFile(name);
    const absl::string_view mark = name == "summary.json" ? "\": \"" : "\":\"";
    directory_.Write(
        name, absl::StrReplaceAll(text, {{mark, absl::StrCat(mark, hostile)}}));
  }
  directory_.Write("job.yaml",
                   absl::StrReplaceAll(FixtureFile("job.yaml"),
                                       {{": ", ": </pre><script>\"'&"}}));
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(CountOf(html, "</pre>"), 1);
  EXPECT_EQ(MarkupFault(html), "");
  EXPECT_GT(CountOf(html, "&lt;script&gt;"), 20);
}

TEST_F(ReportTest, TheFirstCauseComesBeforeItsConsequences) {
  directory_.Write(
      "summary.json",
      "{\"name\":\"j\",\"state\":\"FAILED\",\"reason\":\"STAGE_LOST\","
      "\"cause\":{\"stage\":\"stage-2\",\"message\":\"killed by signal 9\"}}");
  directory_.Write(
      "events.jsonl",
      "{\"severity\":\"WARNING\",\"kind\":\"TRANSPORT_TIMEOUT\",\"message\":"
      "\"edge reset\",\"consequence\":true}\n"
      "{\"severity\":\"ERROR\",\"kind\":\"STAGE_EXITED\",\"message\":\"gone\"}"
      "\n"
      "{\"severity\":\"ERROR\",\"kind\":\"STAGE_LOST\",\"message\":\"lost\"}\n"
      "{\"severity\":\"INFO\",\"kind\":\"STATE\",\"message\":\"x\"}\n");
  ASSERT_OK(WriteReport(directory_.path()));
  const std::string html = Html();
  EXPECT_THAT(html, HasSubstr("<div class=\"banner bad\"><strong>STAGE_LOST"
                              "</strong> on stage-2<div>killed by signal 9"));
  const size_t cause = html.find("<b>STAGE_LOST</b> <em>first cause</em>");
  const size_t other = html.find("<b>STAGE_EXITED</b>");
  const size_t follows =
      html.find("<b>TRANSPORT_TIMEOUT</b> <em>consequence</em>");
  ASSERT_NE(follows, std::string::npos);
  EXPECT_LT(cause, other);
  EXPECT_LT(other, follows);
  EXPECT_LT(follows, html.find("<h2>Events</h2>"));
}

TEST_F(ReportTest, MemoryThatWasNotAsPredictedSaysByHowMuch) {
  directory_.Write("summary.json",
                   "{\"stages\":[{\"rank\":0,\"peak_bytes\":{\"predicted\":100,"
                   "\"measured\":110},\"peak_activation_bytes\":{\"predicted\":"
                   "50,\"measured\":50}}]}");
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), HasSubstr("title=\"10 bytes\">+10.00 %</td>"));
  EXPECT_EQ(CountOf(Html(), ">exact</td>"), 1);
}

TEST_F(ReportTest, SkippedAndNonfiniteStepsAreMarked) {
  directory_.Write(
      "metrics.jsonl",
      "{\"step\":1,\"loss\":3}\n"
      "{\"step\":2,\"loss\":null,\"nonfinite\":[\"loss\"],\"skipped\":true}\n"
      "{\"step\":3,\"loss\":2}\n");
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), HasSubstr("Red marks: 1 step skipped or with a value"));
  EXPECT_EQ(CountOf(Html(), "class=\"mark\""), 1);
}

TEST(PageTest, StaysBelowFourMegabytes) {
  RunFiles files;
  for (int step = 1; step <= 200'000; ++step) {
    files.metrics.push_back({.step = step,
                             .loss = 5.0 / step,
                             .grad_norm = 1.0 + step % 7,
                             .step_seconds = 0.1 + step % 3,
                             .tokens_per_second = 100.0 + step % 11,
                             .validation_loss = 2.0,
                             .skipped = step % 2 == 0});
    files.events.push_back(
        {.severity = step % 2 == 0 ? "ERROR" : "INFO",
         .kind = "NOTE",
         .message = std::string(step < 300 ? 10'000 : 1, 'm')});
  }
  TracedStep step{.step = 100};
  const std::string name(10'000, 'n');
  files.summary = RunSummary{.name = name,
                             .id = name,
                             .state = "FAILED",
                             .reason = name,
                             .cause_stage = name,
                             .cause_message = std::string(1 << 20, 'c')};
  constexpr int kRanks = 4096;
  for (int rank = 0; rank < kRanks; ++rank) {
    files.summary->stages.push_back({.rank = rank,
                                     .name = name,
                                     .host = name,
                                     .chunks = std::vector<HeldChunk>(100),
                                     .peak_bytes = {1e9, 1e9 + rank},
                                     .peak_activation_bytes = {1e8, 1e8},
                                     .peak_in_flight = 8,
                                     .busy_seconds = 1});
    files.summary->devices.push_back(absl::StrCat(rank, name));
    for (int chunk = 0; chunk < 16; ++chunk) {
      const double start = 0.2 * chunk + 1e-3 * rank;
      const int stage = rank + chunk * kRanks;
      step.boxes.push_back({rank, 'F', stage, 0, start, start + 0.1});
      step.boxes.push_back({rank, 'B', stage, 0, start + 0.1, start + 0.2});
    }
  }
  files.trace = {step};
  files.predicted = PredictedStep{.step_seconds = 3.2, .boxes = step.boxes};
  files.job_yaml = "model:\n  family: " + std::string(1 << 20, 'x');
  const std::string html = Page(files);
  EXPECT_LT(html.size(), 4'000'000u);
  EXPECT_EQ(MarkupFault(html), "");
  EXPECT_THAT(html, HasSubstr(">3,840 more in summary.json.</p>"));
  EXPECT_THAT(html, HasSubstr(absl::StrCat("<p>", std::string(499, 'm'),
                                           "…</p></div></li>")));
}

TEST_F(ReportTest, WhatIsNotCutIsWhole) {
  const std::string message(500, 'm');
  directory_.Write("events.jsonl",
                   absl::StrCat("{\"severity\":\"INFO\",\"kind\":\"NOTE\","
                                "\"message\":\"",
                                message, "\"}\n"));
  ASSERT_OK(WriteReport(directory_.path()));
  EXPECT_THAT(Html(), HasSubstr(absl::StrCat("<p>", message, "</p>")));
  EXPECT_THAT(Html(), Not(HasSubstr("more in ")));
}

}  // namespace
}  // namespace penstock::client::report
