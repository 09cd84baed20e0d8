// Curves over steps as an SVG picture.
#ifndef PENSTOCK_CLIENT_REPORT_LINE_CHART_H_
#define PENSTOCK_CLIENT_REPORT_LINE_CHART_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/report/series.h"

namespace penstock::client::report {

struct Curve {
  std::string name;         // Stands at the curve's end; may be empty.
  absl::string_view style;  // CSS class: "c-blue", "c-orange", "c-green", ...
  std::vector<Point> points;
  bool dots = false;  // A dot at each point: few, far apart.
};

struct LineChartOptions {
  enum class Scale {
    kAuto,      // Logarithmic where the largest is over 20 times the least.
    kFromZero,  // Linear, the axis starts at 0.
  };
  int width = 1080;  // Pixels of the view box.
  int height = 300;
  Scale scale = Scale::kAuto;
  std::string label;                          // For those who cannot see it.
  std::function<std::string(double)> number;  // A value at a curve's end.
  // Steps marked on the x axis, where something was skipped or not finite.
  std::vector<double> marks;
};

// An inline SVG that takes its colours from the page's style. Curves that are
// long are thinned: the line is the mean, the band behind it has every value.
// Without a finite point: a picture that says so.
std::string LineChartSvg(const std::vector<Curve>& curves,
                         const LineChartOptions& options);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_LINE_CHART_H_
