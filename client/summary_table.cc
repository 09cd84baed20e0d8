#include "client/summary_table.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/text.h"
#include "client/text_table.h"

namespace penstock::client {
namespace {

template <typename T>
std::string OrDash(const std::optional<T>& value, std::string (*text)(T)) {
  return value.has_value() ? text(*value) : "-";
}

std::string PerSecond(double tokens) { return absl::StrFormat("%.0f", tokens); }
std::string Ratio(double value) { return absl::StrFormat("%.3f", value); }

// A line for what people did not choose themselves.
std::string FoundLine(const report::PipelineSummary& pipeline) {
  if (pipeline.found.empty()) return "";
  return absl::StrCat("schedule ", report::ScheduleText(pipeline), "\n");
}

}  // namespace

std::string SummaryTable(const report::RunSummary& summary) {
  const report::Prediction& bubble = summary.bubble_rate;
  const std::vector<std::vector<std::string>> rows = {
      {"", "predicted", "measured"},
      {"bubble rate", OrDash(bubble.predicted, report::Percent),
       OrDash(bubble.measured, report::Percent)}};
  std::vector<std::vector<std::string>> stages = {
      {"stage", "layers", "activations predicted", "measured", "all predicted",
       "measured", "in flight", "busy"}};
  for (const report::RankSummary& stage : summary.stages) {
    const report::Prediction& activations = stage.peak_activation_bytes;
    stages.push_back({absl::StrCat(stage.rank),
                      report::LayersText(stage.chunks),
                      OrDash(activations.predicted, report::Bytes),
                      OrDash(activations.measured, report::Bytes),
                      OrDash(stage.peak_bytes.predicted, report::Bytes),
                      OrDash(stage.peak_bytes.measured, report::Bytes),
                      OrDash(stage.peak_in_flight, report::Count),
                      OrDash(stage.busy_seconds, report::Seconds)});
  }
  return absl::StrCat(
      "loss ", OrDash(summary.final_loss, report::Loss), "  validation ",
      OrDash(summary.validation_loss, report::Loss), "  ",
      OrDash(summary.tokens_per_second, PerSecond), " tokens/s  step ",
      OrDash(summary.step_seconds_p50, report::Seconds), "  realisation ",
      OrDash(summary.realisation, Ratio), "\n", FoundLine(summary.pipeline),
      "\n", FormatTable(rows), "\n", FormatTable(stages));
}

}  // namespace penstock::client
