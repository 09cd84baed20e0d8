#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/sections.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

void Row(const std::string& name, const std::string& predicted,
         const std::string& measured, const std::string& difference,
         const std::string& how, std::string& out) {
  const auto cell = [](const std::string& text) {
    return text.empty() ? std::string("–") : text;
  };
  absl::StrAppendFormat(
      &out,
      "<tr><th>%s</th><td class=\"num\">%s</td><td class=\"num\">%s</td>"
      "<td class=\"num\">%s</td><td class=\"soft\">%s</td></tr>\n",
      name, cell(predicted), cell(measured), cell(difference), how);
}

std::string BubbleDifference(double predicted, double measured) {
  return absl::StrFormat("%+.1f points", 100 * (measured - predicted));
}

}  // namespace

std::string PredictionSection(const RunFiles& files) {
  if (!files.summary.has_value()) return "";
  const RunSummary& summary = *files.summary;
  const Prediction& bubble = summary.bubble_rate;
  std::string rows;
  const PipelineSummary& pipeline = summary.pipeline;
  if (pipeline.formula_bubble.has_value() && bubble.measured.has_value()) {
    Row("Bubble rate, formula", Percent(*pipeline.formula_bubble),
        Percent(*bubble.measured),
        BubbleDifference(*pipeline.formula_bubble, *bubble.measured),
        absl::StrCat(EscapedName(pipeline.formula),
                     ", for stages of equal length, F = I = W"),
        rows);
  }
  if (bubble.predicted.has_value() || bubble.measured.has_value()) {
    const bool both =
        bubble.predicted.has_value() && bubble.measured.has_value();
    Row("Bubble rate, plan",
        bubble.predicted.has_value() ? Percent(*bubble.predicted) : "",
        bubble.measured.has_value() ? Percent(*bubble.measured) : "",
        both ? BubbleDifference(*bubble.predicted, *bubble.measured) : "",
        "the schedule simulated with the planner's costs", rows);
  }
  if (summary.step_seconds_p50.has_value()) {
    const double measured = *summary.step_seconds_p50;
    const bool known = summary.realisation.has_value();
    const double simulated = known ? *summary.realisation * measured : 0;
    Row("Step time", known ? Seconds(simulated) : "", Seconds(measured),
        known && simulated > 0
            ? absl::StrFormat("%+.1f %%", 100 * (measured / simulated - 1))
            : "",
        "the schedule simulated with the measured times of the commands", rows);
    if (known) {
      Row("Realisation", "1", absl::StrFormat("%.3f", *summary.realisation), "",
          "simulated / measured step time; what is missing to 1 is what runs "
          "between the commands",
          rows);
    }
  }
  if (rows.empty()) return "";
  return absl::StrCat(
      "<section class=\"card\">\n<h2>Predicted and measured</h2>\n"
      "<div class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"num\">"
      "predicted</th><th class=\"num\">measured</th><th class=\"num\">"
      "difference</th><th>how it was predicted</th></tr></thead>\n<tbody>\n",
      rows, "</tbody></table></div>\n</section>\n");
}

}  // namespace penstock::client::report
