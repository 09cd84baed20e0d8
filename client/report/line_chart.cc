#include "client/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/axis.h"
#include "client/report/text.h"

namespace penstock::client::report {
namespace {

constexpr double kLeft = 50;
constexpr double kTop = 12;
constexpr double kBottom = 26;
constexpr double kLabelHeight = 15;
constexpr double kLogFrom = 20;  // Largest / least.
constexpr size_t kMostDots = 60;

class Chart {
 public:
  Chart(const std::vector<Curve>& curves, const LineChartOptions& options)
      : curves_(curves), options_(options) {
    Measure();
  }
  std::string Draw() const;

 private:
  void Measure();
  void DrawAxes(std::string& out) const;
  void DrawCurve(const Curve& curve, const std::vector<Bucket>& buckets,
                 std::string& out) const;
  void DrawEndLabels(std::string& out) const;

  double X(double x) const {
    const double share = x1_ > x0_ ? (x - x0_) / (x1_ - x0_) : 0.5;
    return kLeft + share * (options_.width - kLeft - right_);
  }
  double Y(double y) const {
    const double share =
        log_ ? std::log(std::max(y, y0_) / y0_) / std::log(y1_ / y0_)
             : (y - y0_) / (y1_ - y0_);
    return options_.height - kBottom -
           std::clamp(share, 0.0, 1.0) * (options_.height - kTop - kBottom);
  }

  const std::vector<Curve>& curves_;
  const LineChartOptions& options_;
  std::vector<std::vector<Bucket>> buckets_;  // By curve.
  bool empty_ = true, log_ = false;
  double x0_ = 0, x1_ = 0, y0_ = 0, y1_ = 0;
  double right_ = 28;  // Half of the last step's number.
};

void Chart::Measure() {
  const int most = std::max(10, options_.width / 2);
  bool any_x = false;
  for (const Curve& curve : curves_) {
    buckets_.push_back(Thin(curve.points, most));
    if (!curve.name.empty()) right_ = 128;
    for (const Point& point : curve.points) {
      x0_ = any_x ? std::min(x0_, point.x) : point.x;
      x1_ = any_x ? std::max(x1_, point.x) : point.x;
      any_x = true;
    }
    for (const Bucket& bucket : buckets_.back()) {
      if (bucket.count == 0) continue;
      y0_ = empty_ ? bucket.low : std::min(y0_, bucket.low);
      y1_ = empty_ ? bucket.high : std::max(y1_, bucket.high);
      empty_ = false;
    }
  }
  if (empty_) return;
  if (options_.scale == LineChartOptions::Scale::kFromZero) {
    y0_ = std::min(y0_, 0.0);
    y1_ = y1_ > y0_ ? y1_ * 1.06 : y0_ + 1;
    return;
  }
  log_ = y0_ > 0 && y1_ > kLogFrom * y0_;
  if (log_) {
    y0_ /= 1.1;
    y1_ *= 1.1;
    return;
  }
  const double room =
      y1_ > y0_ ? (y1_ - y0_) * 0.06 : std::max(std::abs(y1_) * 0.1, 1e-12);
  y0_ -= room;
  y1_ += room;
}

void Chart::DrawAxes(std::string& out) const {
  const double end = options_.width - right_;
  const int wanted = std::max(4, (options_.height - 40) / 48);
  for (const double tick :
       log_ ? LogTicks(y0_, y1_) : LinearTicks(y0_, y1_, wanted)) {
    const double y = Y(tick);
    absl::StrAppendFormat(
        &out,
        "<line class=\"grid\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>"
        "<text class=\"tick\" x=\"%s\" y=\"%s\" text-anchor=\"end\">%s"
        "</text>\n",
        Coordinate(kLeft), Coordinate(end), Coordinate(y), Coordinate(y),
        Coordinate(kLeft - 8), Coordinate(y + 4), ShortNumber(tick));
  }
  const double base = options_.height - kBottom;
  absl::StrAppendFormat(
      &out, "<line class=\"axis\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>\n",
      Coordinate(kLeft), Coordinate(end), Coordinate(base), Coordinate(base));
  const int columns = std::max(2, (options_.width - 60) / 110);
  std::vector<double> ticks = LinearTicks(x0_, x1_, columns);
  if (ticks.empty()) ticks = {x0_};
  for (const double tick : ticks) {
    if (tick != std::floor(tick)) continue;  // Between two steps.
    absl::StrAppendFormat(&out,
                          "<text class=\"tick\" x=\"%s\" y=\"%s\" "
                          "text-anchor=\"middle\">%s</text>\n",
                          Coordinate(X(tick)), Coordinate(base + 18),
                          Count(static_cast<int64_t>(tick)));
  }
  absl::StrAppendFormat(&out,
                        "<text class=\"tick\" x=\"%s\" y=\"%s\" "
                        "text-anchor=\"end\">step</text>\n",
                        Coordinate(kLeft - 8), Coordinate(base + 18));
  if (log_) {
    absl::StrAppendFormat(&out,
                          "<text class=\"tick\" x=\"%s\" y=\"%s\">log "
                          "scale</text>\n",
                          Coordinate(kLeft + 6), Coordinate(kTop + 6));
  }
  // Neighbours would only cover each other: one mark a pixel.
  double last = -1;
  for (const double mark : options_.marks) {
    if (X(mark) - last < 1) continue;
    last = X(mark);
    absl::StrAppendFormat(
        &out,
        "<path class=\"mark\" d=\"M%s %sv-9\"><title>step %s: skipped or not "
        "finite</title></path>\n",
        Coordinate(last), Coordinate(base), ShortNumber(mark));
  }
}

void Chart::DrawCurve(const Curve& curve, const std::vector<Bucket>& buckets,
                      std::string& out) const {
  std::string line, upper, dots;
  std::vector<const Bucket*> run;  // Of the band: between two gaps.
  std::string band;
  const auto close_band = [&] {
    if (run.size() > 1) {
      absl::StrAppend(&band, "M");
      for (const Bucket* b : run) {
        absl::StrAppend(&band, Coordinate(X(b->x)), " ", Coordinate(Y(b->high)),
                        " ");
      }
      for (auto b = run.rbegin(); b != run.rend(); ++b) {
        absl::StrAppend(&band, Coordinate(X((*b)->x)), " ",
                        Coordinate(Y((*b)->low)), " ");
      }
      absl::StrAppend(&band, "z");
    }
    run.clear();
  };
  bool thinned = false, pen_down = false;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    if (bucket.count == 0) {
      pen_down = false;
      close_band();
      continue;
    }
    run.push_back(&bucket);
    if (bucket.count > 1) thinned = true;
    const std::string at =
        absl::StrCat(Coordinate(X(bucket.x)), " ", Coordinate(Y(bucket.mean)));
    absl::StrAppend(&line, pen_down ? " " : "M", at);
    const bool alone =
        !pen_down && (i + 1 == buckets.size() || buckets[i + 1].count == 0);
    if ((curve.dots && buckets.size() <= kMostDots) || alone) {
      absl::StrAppendFormat(
          &dots,
          "<circle cx=\"%s\" cy=\"%s\" r=\"3.5\"><title>step %s: %s</title>"
          "</circle>\n",
          Coordinate(X(bucket.x)), Coordinate(Y(bucket.mean)),
          ShortNumber(bucket.x),
          options_.number ? options_.number(bucket.mean)
                          : ShortNumber(bucket.mean));
    }
    pen_down = true;
  }
  close_band();
  absl::StrAppendFormat(&out, "<g class=\"%s\">\n", curve.style);
  if (thinned) {
    absl::StrAppendFormat(&out, "<path class=\"band\" d=\"%s\"/>\n", band);
  }
  absl::StrAppendFormat(&out, "<path class=\"line\" d=\"%s\"/>\n%s</g>\n", line,
                        dots);
}

void Chart::DrawEndLabels(std::string& out) const {
  struct Label {
    double y;
    const Curve* curve;
    std::string text;
  };
  std::vector<Label> labels;
  for (size_t i = 0; i < curves_.size(); ++i) {
    if (curves_[i].name.empty()) continue;
    std::optional<double> last;
    for (const Point& point : curves_[i].points) {
      if (std::isfinite(point.y)) last = point.y;
    }
    if (!last.has_value()) continue;
    labels.push_back({Y(*last), &curves_[i],
                      absl::StrCat(curves_[i].name, " ",
                                   options_.number ? options_.number(*last)
                                                   : ShortNumber(*last))});
  }
  // Upwards from the lowest place, so that none covers another.
  std::sort(labels.begin(), labels.end(),
            [](const Label& a, const Label& b) { return a.y > b.y; });
  double free = options_.height - kBottom;
  for (Label& label : labels) {
    label.y = std::min(label.y, free);
    free = label.y - kLabelHeight;
    absl::StrAppendFormat(
        &out, "<text class=\"endlabel %s\" x=\"%s\" y=\"%s\">%s</text>\n",
        label.curve->style, Coordinate(options_.width - right_ + 8),
        Coordinate(label.y + 4), Escape(label.text));
  }
}

std::string Chart::Draw() const {
  std::string out = absl::StrFormat(
      "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" "
      "aria-label=\"%s\">\n",
      options_.width, options_.height, Escape(options_.label));
  if (empty_) {
    absl::StrAppendFormat(&out,
                          "<text class=\"tick\" x=\"%d\" y=\"%d\" "
                          "text-anchor=\"middle\">no values</text>\n</svg>\n",
                          options_.width / 2, options_.height / 2);
    return out;
  }
  DrawAxes(out);
  for (size_t i = 0; i < curves_.size(); ++i) {
    DrawCurve(curves_[i], buckets_[i], out);
  }
  DrawEndLabels(out);
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

}  // namespace

std::string LineChartSvg(const std::vector<Curve>& curves,
                         const LineChartOptions& options) {
  return Chart(curves, options).Draw();
}

}  // namespace penstock::client::report
