#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/line_chart.h"
#include "client/report/sections.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

template <typename Value>
std::vector<Point> Points(const std::vector<StepMetrics>& metrics,
                          Value value) {
  std::vector<Point> points;
  points.reserve(metrics.size());
  for (const StepMetrics& step : metrics) {
    points.push_back({static_cast<double>(step.step), value(step)});
  }
  return points;
}

bool AnyFinite(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const Point& p) { return std::isfinite(p.y); });
}

std::string LossChart(const RunFiles& files) {
  std::vector<Curve> curves;
  curves.push_back({.name = "train",
                    .style = "c-blue",
                    .points = Points(files.metrics, [](const StepMetrics& m) {
                      return m.loss;
                    })});
  Curve validation{.name = "validation", .style = "c-orange", .dots = true};
  LineChartOptions options{.label = "Loss over steps", .number = [](double v) {
                             return absl::StrFormat("%.3f", v);
                           }};
  for (const StepMetrics& step : files.metrics) {
    const auto x = static_cast<double>(step.step);
    if (step.validation_loss.has_value()) {
      validation.points.push_back({x, *step.validation_loss});
    }
    if (step.skipped || step.nonfinite) options.marks.push_back(x);
  }
  if (!validation.points.empty()) curves.push_back(std::move(validation));
  std::string out =
      absl::StrCat("<section class=\"card\">\n<h2>Loss</h2>\n",
                   "<p class=\"sub\">nats a token over steps",
                   curves.size() > 1 ? ", training before the update and "
                                       "validation after it"
                                     : "",
                   "</p>\n<div class=\"scroll\">",
                   LineChartSvg(curves, options), "</div>\n");
  if (!options.marks.empty()) {
    absl::StrAppendFormat(&out,
                          "<p class=\"note\">Red marks: %d %s skipped or with "
                          "a value that was not finite.</p>\n",
                          static_cast<int>(options.marks.size()),
                          options.marks.size() == 1 ? "step" : "steps");
  }
  absl::StrAppend(&out, "</section>\n");
  return out;
}

std::string Small(absl::string_view title, absl::string_view unit,
                  absl::string_view style, std::vector<Point> points,
                  LineChartOptions options) {
  if (!AnyFinite(points)) return "";
  options.width = 520;
  options.height = 190;
  options.label = absl::StrCat(title, " over steps");
  return absl::StrFormat(
      "<section class=\"card small\">\n<h3>%s <small>%s</small></h3>\n%s"
      "</section>\n",
      title, unit,
      LineChartSvg({{.style = style, .points = std::move(points)}}, options));
}

}  // namespace

std::string CurvesSection(const RunFiles& files) {
  if (files.metrics.empty()) return "";
  const std::vector<StepMetrics>& metrics = files.metrics;
  const LineChartOptions from_zero{.scale = LineChartOptions::Scale::kFromZero};
  std::string out = LossChart(files);
  absl::StrAppend(&out, "<div class=\"grid2\">\n");
  out += Small(
      "Speed", "tokens/s", "c-teal",
      Points(metrics, [](const StepMetrics& m) { return m.tokens_per_second; }),
      from_zero);
  out += Small(
      "Gradient norm", "before clipping", "c-purple",
      Points(metrics, [](const StepMetrics& m) { return m.grad_norm; }), {});
  out +=
      Small("Step time", "ms, barrier and apply in", "c-green",
            Points(metrics,
                   [](const StepMetrics& m) { return m.step_seconds * 1e3; }),
            from_zero);
  out += Small("Learning rate", "", "c-slate",
               Points(metrics, [](const StepMetrics& m) { return m.lr; }),
               from_zero);
  absl::StrAppend(&out, "</div>\n");
  return out;
}

}  // namespace penstock::client::report
