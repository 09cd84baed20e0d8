#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/report/heatmap.h"
#include "client/report/sections.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

constexpr int64_t kMostRows = 4096;

const StepMetrics* MetricsOf(const RunFiles& files, int64_t step) {
  for (const StepMetrics& metrics : files.metrics) {
    if (metrics.step == step) return &metrics;
  }
  return nullptr;
}

std::string Figure(const std::string& name, const std::string& value,
                   absl::string_view style) {
  return absl::StrFormat(
      "<div class=\"figure %s\"><span>%s</span><b>%s</b></div>\n", style, name,
      value);
}

// The bubble of this step, of the job, of the plan and of the textbook.
std::string Figures(const RunFiles& files, const StepMetrics* metrics) {
  std::string out;
  if (metrics != nullptr && metrics->bubble_rate.has_value()) {
    out +=
        Figure("bubble of this step", Percent(*metrics->bubble_rate), "strong");
  }
  if (files.summary.has_value()) {
    const Prediction& bubble = files.summary->bubble_rate;
    if (bubble.measured.has_value()) {
      out += Figure("median of the job", Percent(*bubble.measured), "");
    }
    if (bubble.predicted.has_value()) {
      out += Figure("plan predicted", Percent(*bubble.predicted), "");
    }
  }
  const PipelineSummary pipeline = files.pipeline();
  if (pipeline.formula_bubble.has_value()) {
    out += Figure(EscapedName(pipeline.formula),
                  Percent(*pipeline.formula_bubble), "");
  }
  return out.empty()
             ? out
             : absl::StrCat("<div class=\"figures\">\n", out, "</div>\n");
}

std::vector<HeatmapRow> Rows(const RunFiles& files) {
  std::vector<HeatmapRow> rows;
  if (!files.summary.has_value()) return rows;
  for (const RankSummary& rank : files.summary->stages) {
    if (rank.rank < 0 || rank.rank >= kMostRows) continue;
    if (rank.rank >= rows.size()) rows.resize(rank.rank + 1);
    rows[rank.rank].detail = Truncated(LayersText(rank.chunks), kMostName);
  }
  return rows;
}

// Why it is this step.
std::string Choice(const RunFiles& files, const TracedStep& step) {
  if (files.trace.size() < 2) return "";
  return absl::StrFormat(
      "Of %d timed steps this is the one of median length%s. ",
      files.trace.size(), IsWarmUp(step) ? "" : ", warm-up left out");
}

// "1F1B · K = 4 ranks · M = 8 micro-batches · 0.10 s", as far as it is known.
std::string Shape(const PipelineSummary& pipeline, const StepMetrics* metrics) {
  std::vector<std::string> parts;
  if (!pipeline.schedule.empty()) {
    parts.push_back(absl::StrCat(
        "<b>", EscapedName(absl::AsciiStrToUpper(ScheduleText(pipeline))),
        "</b>"));
  }
  if (pipeline.ranks > 0) {
    parts.push_back(absl::StrCat("K = ", pipeline.ranks,
                                 pipeline.ranks == 1 ? " rank" : " ranks"));
  }
  if (pipeline.micro_batches > 0) {
    parts.push_back(absl::StrCat(
        "M = ", pipeline.micro_batches,
        pipeline.micro_batches == 1 ? " micro-batch" : " micro-batches"));
  }
  if (pipeline.chunks > 1) {
    parts.push_back(absl::StrCat("v = ", pipeline.chunks, " chunks a rank"));
  }
  if (metrics != nullptr && std::isfinite(metrics->step_seconds)) {
    parts.push_back(Seconds(metrics->step_seconds));
  }
  return absl::StrJoin(parts, " · ");
}

// From the first command's start to the last one's end.
struct Span {
  double first = 0;
  double last = 0;
  double length() const { return last - first; }
};

Span SpanOf(const std::vector<HeatmapBox>& boxes) {
  Span span{.first = boxes.front().start, .last = boxes.front().end};
  for (const HeatmapBox& box : boxes) {
    span.first = std::min(span.first, box.start);
    span.last = std::max(span.last, box.end);
  }
  return span;
}

std::string Picture(const std::string& name,
                    const std::vector<HeatmapBox>& boxes,
                    const HeatmapOptions& options) {
  return absl::StrCat(name, "<div class=\"scroll\">",
                      HeatmapSvg(boxes, options), "</div>\n");
}

std::string SignedSeconds(double seconds) {
  return absl::StrCat(seconds < 0 ? "−" : "", Seconds(std::abs(seconds)));
}

// How far the two pictures are apart, and where.
std::string Difference(const PredictedStep& predicted,
                       const StepMetrics* metrics, const Span& span) {
  std::string out = absl::StrFormat(
      "<p class=\"note\">Predicted: the schedule simulated with the median "
      "time of each stage's commands, %s; the median step took %s. Realisation "
      "= simulated / measured = <b>%.3f</b>.",
      Seconds(predicted.step_seconds), Seconds(predicted.measured_step_seconds),
      predicted.realisation);
  if (metrics != nullptr && std::isfinite(metrics->step_seconds)) {
    absl::StrAppendFormat(
        &out,
        " This step took %s: of the difference to the simulated one %s lie "
        "between its commands (the way of messages, hand-overs, commands that "
        "were slower than their median) and %s behind the last one (barrier "
        "and apply).",
        Seconds(metrics->step_seconds),
        SignedSeconds(span.length() - predicted.step_seconds),
        SignedSeconds(metrics->step_seconds - span.length()));
  }
  return absl::StrCat(out, "</p>\n");
}

// What was predicted above what was measured, on one scale.
std::string Timelines(const RunFiles& files, const TracedStep& step,
                      const StepMetrics* metrics) {
  HeatmapOptions measured{.rows = Rows(files)};
  const Span span = SpanOf(step.boxes);
  double length = span.length();
  if (metrics != nullptr && std::isfinite(metrics->step_seconds)) {
    measured.step_end = span.first + metrics->step_seconds;
    length = std::max(length, metrics->step_seconds);
  }
  if (!files.predicted.ok() || files.predicted->boxes.empty()) {
    const std::string why =
        files.predicted.ok() ? "predicted.json has no command"
                             : std::string(files.predicted.status().message());
    return absl::StrCat(Picture("", step.boxes, measured),
                        "<p class=\"note\">There is no predicted timeline to "
                        "compare with: ",
                        EscapedName(why), ".</p>\n");
  }
  const PredictedStep& predicted = *files.predicted;
  measured.least_span = SpanOf(predicted.boxes).length();
  const HeatmapOptions ideal{
      .rows = measured.rows, .least_span = length, .id = "hm2"};
  return absl::StrCat(Picture("<h3>Predicted</h3>\n", predicted.boxes, ideal),
                      Picture("<h3>Measured</h3>\n", step.boxes, measured),
                      Difference(predicted, metrics, span));
}

}  // namespace

std::string StepSection(const RunFiles& files) {
  const TracedStep* const step = SteadyStep(files.trace);
  if (step == nullptr) {
    return "<section class=\"card\">\n<h2>One step, rank by rank</h2>\n"
           "<p class=\"note\">No step was timed command by command: trace.json "
           "is not there or has none.</p>\n</section>\n";
  }
  const StepMetrics* const metrics = MetricsOf(files, step->step);
  const PipelineSummary pipeline = files.pipeline();
  std::string out = absl::StrFormat(
      "<section class=\"card\">\n<div class=\"headline\"><div>"
      "<h2>Step %s, rank by rank</h2>\n<p class=\"sub\">",
      Count(step->step));
  absl::StrAppend(&out, Shape(pipeline, metrics), "</p></div>\n",
                  Figures(files, metrics), "</div>\n",
                  Timelines(files, *step, metrics));
  absl::StrAppendFormat(
      &out,
      "<p class=\"note\">A box is one command on one micro-batch, whose number "
      "it bears where there is room; darker is later, hatched is idle. %sRows "
      "are put on one clock by the arrival of each rank's report, moved so "
      "that no command starts before its input was made; within that they may "
      "be off by the way of a message. Bubble = 1 − busiest rank's busy time / "
      "step time, barrier "
      "and apply included%s.</p>\n</section>\n",
      Choice(files, *step),
      pipeline.formula_bubble.has_value()
          ? "; the formula takes stages of equal length, F = I = W and nothing "
            "between the commands"
          : "");
  return out;
}

}  // namespace penstock::client::report
