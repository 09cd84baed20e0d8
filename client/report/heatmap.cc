#include "client/report/heatmap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/axis.h"
#include "client/report/heatmap_layout.h"
#include "client/report/heatmap_style.h"
#include "client/report/op_colors.h"
#include "client/report/text.h"
#include "common/text/utf8.h"

namespace penstock::client::report {
namespace {

// Pixels.
constexpr double kAxisHeight = 30;
constexpr double kFileMargin = 20;
constexpr double kLegendGap = 20;
constexpr double kLeastLabelSize = 9;
constexpr double kDetailGap = 8;  // Between a detail and its row.

// Characters of a row's label.
constexpr int kWholeLabel = 24;
constexpr int kLabelBesideDetail = 9;

constexpr int kMostLabels = 256;  // Of rows.

struct AxisUnit {
  double scale = 1;
  absl::string_view name;
};

AxisUnit UnitOf(double span, HeatmapOptions::Unit unit) {
  if (unit == HeatmapOptions::Unit::kAbstract) return {1, ""};
  if (span < 2e-3) return {1e6, "µs"};
  if (span < 10) return {1e3, "ms"};
  return {1, "s"};
}

class Drawing {
 public:
  Drawing(const HeatmapLayout& layout, const HeatmapOptions& options)
      : at_(layout), options_(options) {}

  std::string Draw() const;

 private:
  void DrawTitles(std::string& out) const;
  void DrawLegend(std::string& out) const;
  void DrawRow(int rank, std::string& out) const;
  void DrawBoxes(std::string& out) const;
  void DrawNumbers(std::string& out) const;
  void DrawStepEnd(std::string& out) const;
  void DrawAxis(std::string& out) const;

  std::string Tooltip(const HeatmapBox& box) const;
  std::string Time(double time) const {
    return options_.unit == HeatmapOptions::Unit::kSeconds ? Seconds(time)
                                                           : ShortNumber(time);
  }

  const HeatmapLayout& at_;
  const HeatmapOptions& options_;
};

std::string Drawing::Draw() const {
  std::string out;
  const double height =
      at_.boxes.empty() ? 64 : at_.Bottom() + kAxisHeight + (at_.cut ? 16 : 0);
  const bool file = options_.frame == HeatmapOptions::Frame::kFile;
  const double margin = file ? kFileMargin : 0;
  const std::string whole_width = Coordinate(kHeatmapWidth + 2 * margin);
  const std::string whole_height = Coordinate(height + 2 * margin);
  absl::StrAppendFormat(
      &out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hm\" "
      "viewBox=\"%s %s %s %s\"%s role=\"img\" aria-label=\"%s\">\n<style>%s",
      Coordinate(-margin), Coordinate(-margin), whole_width, whole_height,
      file ? absl::StrFormat(" width=\"%s\" height=\"%s\"", whole_width,
                             whole_height)
           : "",
      Escape(options_.title.empty() ? "Commands of each rank over time"
                                    : options_.title),
      HeatmapStyle());
  std::set<std::pair<char, int>> used;
  for (const HeatmapBox& box : at_.boxes) used.insert({box.op, at_.Shade(box)});
  for (const auto& [op, shade] : used) {
    absl::StrAppendFormat(&out, ".hm .%c%d{fill:%s}", op, shade,
                          ColorOf(op, shade).fill);
  }
  absl::StrAppend(&out, "</style>\n");
  if (file) {
    absl::StrAppendFormat(
        &out,
        "<rect class=\"paper\" x=\"%s\" y=\"%s\" width=\"%s\" "
        "height=\"%s\"/>\n",
        Coordinate(-margin), Coordinate(-margin), whole_width, whole_height);
  }
  if (at_.boxes.empty()) {
    absl::StrAppend(&out,
                    "<text class=\"soft\" x=\"0\" y=\"36\">No command was "
                    "timed.</text>\n</svg>\n");
    return out;
  }
  absl::StrAppendFormat(
      &out,
      "<defs><pattern id=\"%s-idle\" width=\"6\" height=\"6\" "
      "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
      "<rect class=\"track\" width=\"6\" height=\"6\"/>"
      "<line class=\"hatch\" y2=\"6\"/></pattern></defs>\n",
      options_.id);
  DrawTitles(out);
  DrawLegend(out);
  for (int rank = 0; rank < at_.ranks; ++rank) DrawRow(rank, out);
  DrawAxis(out);
  DrawStepEnd(out);
  DrawBoxes(out);
  if (at_.labelled) DrawNumbers(out);
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

void Drawing::DrawTitles(std::string& out) const {
  double y = 0;
  if (!options_.title.empty()) {
    y += kTitleHeight;
    absl::StrAppendFormat(&out,
                          "<text class=\"h\" x=\"0\" y=\"%s\">%s</text>\n",
                          Coordinate(y - 8), Escape(options_.title));
  }
  if (!options_.subtitle.empty()) {
    y += kSubtitleHeight;
    absl::StrAppendFormat(&out,
                          "<text class=\"soft\" x=\"0\" y=\"%s\">%s</text>\n",
                          Coordinate(y - 6), Escape(options_.subtitle));
  }
}

void Drawing::DrawLegend(std::string& out) const {
  const double y = at_.top - kLegendHeight + 6;
  double x = at_.left;
  const auto words = [&](absl::string_view text) {
    absl::StrAppendFormat(&out,
                          "<text class=\"soft\" x=\"%s\" y=\"%s\">%s</text>\n",
                          Coordinate(x), Coordinate(y + 10), text);
    x += kSoftCharacter *
             static_cast<double>(common::text::CharacterCount(text)) +
         kLegendGap;
  };
  const auto swatch = [&](absl::string_view look, double width) {
    absl::StrAppendFormat(
        &out,
        "<rect %s x=\"%s\" y=\"%s\" width=\"%s\" height=\"12\" rx=\"2\"/>",
        look, Coordinate(x), Coordinate(y), Coordinate(width));
    x += width;
  };
  for (const char op : {'F', 'B', 'I', 'W', 'X'}) {
    if (at_.ops.count(op) == 0) continue;
    const int shades = std::min(at_.micro_batches, 4);
    for (int i = 0; i < shades; ++i) {
      const int shade = ShadeOf(i, shades);
      swatch(absl::StrFormat("fill=\"%s\"", ColorOf(op, shade).fill), 12);
      x += 1;
    }
    x += 5;
    words(op == 'X' ? std::string(NameOfOp(op))
                    : absl::StrFormat("%c %s", op, NameOfOp(op)));
  }
  swatch(absl::StrFormat("class=\"idle\" fill=\"url(#%s-idle)\"", options_.id),
         18);
  x += 6;
  words("idle");
  if (at_.step_end > at_.last && !at_.cut) {
    swatch("class=\"end\"", 18);
    x += 6;
    words("barrier + apply");
  }
  if (at_.last_chunk > 0) {
    swatch(absl::StrFormat("fill=\"%s\"", ColorOf('F', 3).fill), 18);
    absl::StrAppendFormat(&out,
                          "<rect class=\"chunk\" x=\"%s\" y=\"%s\" "
                          "width=\"18\" height=\"3\"/>",
                          Coordinate(x - 18), Coordinate(y + 9));
    x += 6;
    words(at_.last_chunk == 1
              ? "underlined: the second chunk of the rank"
              : "underlined: a later chunk of the rank, the thicker the later");
  }
  absl::StrAppendFormat(&out,
                        "<text class=\"soft\" x=\"%s\" y=\"%s\" "
                        "text-anchor=\"end\">busy</text>\n",
                        Coordinate(kHeatmapWidth), Coordinate(y + 10));
}

void Drawing::DrawRow(int rank, std::string& out) const {
  const double y = at_.Y(rank), middle = y + at_.row / 2;
  absl::StrAppendFormat(
      &out,
      "<rect class=\"idle\" fill=\"url(#%s-idle)\" x=\"%s\" y=\"%s\" "
      "width=\"%s\" height=\"%s\"/>\n",
      options_.id, Coordinate(at_.left), Coordinate(y),
      Coordinate(at_.X(at_.cut ? at_.origin + at_.span : at_.last) - at_.left),
      Coordinate(at_.row));
  // Rows too low for text of this size, or very many, have a label every so
  // often.
  const double size =
      std::min(kTextSize, std::max(at_.row - 1, kLeastLabelSize));
  const int stride =
      std::max(static_cast<int>(std::ceil((size + 1) / (at_.row + at_.gap))),
               (at_.ranks + kMostLabels - 1) / kMostLabels);
  if (rank % stride != 0) return;
  HeatmapRow row;
  if (rank < static_cast<int>(options_.rows.size())) row = options_.rows[rank];
  if (row.label.empty()) row.label = absl::StrCat("rank ", rank);
  const bool two_lines =
      at_.details && !row.detail.empty() && at_.row >= kLeastRowOfTwoLines;
  absl::StrAppendFormat(
      &out, "<text x=\"0\" y=\"%s\" style=\"font-size:%spx\">%s",
      Coordinate(middle + (two_lines ? -3 : size * kBelowMiddle)),
      Coordinate(size),
      Escape(
          Truncated(row.label, two_lines ? kWholeLabel : kLabelBesideDetail)));
  if (!row.detail.empty()) {
    absl::StrAppendFormat(&out, "<title>%s</title>",
                          Escape(absl::StrCat(row.label, ": ", row.detail)));
  }
  absl::StrAppend(&out, "</text>\n");
  if (at_.details) {
    const double from = two_lines ? 0 : kBesideLabel;
    absl::StrAppendFormat(
        &out,
        "<text class=\"soft\" x=\"%s\" y=\"%s\" "
        "style=\"font-size:%spx\">%s</text>\n",
        Coordinate(from),
        Coordinate(middle + (two_lines ? 11 : size * kBelowMiddle)),
        Coordinate(std::min(kSoftSize, size)),
        Escape(Truncated(row.detail,
                         static_cast<int>((at_.left - from - kDetailGap) /
                                          kSoftCharacter))));
  }
  absl::StrAppendFormat(
      &out,
      "<text class=\"soft\" x=\"%s\" y=\"%s\" "
      "style=\"font-size:%spx\" text-anchor=\"end\">%.0f "
      "%%</text>\n",
      Coordinate(kHeatmapWidth), Coordinate(middle + size * kBelowMiddle),
      Coordinate(std::min(kSoftSize, size)), 100 * at_.busy_share[rank]);
}

std::string Drawing::Tooltip(const HeatmapBox& box) const {
  return absl::StrFormat(
      "%d%c%d: %s of micro-batch %d, stage %d, rank %d; %s "
      "from %s",
      box.stage, box.op, box.micro_batch, NameOfOp(box.op), box.micro_batch,
      box.stage, box.rank, Time(box.end - box.start),
      Time(box.start - at_.origin));
}

void Drawing::DrawBoxes(std::string& out) const {
  if (at_.labelled) {
    const double radius = at_.row > 20 ? 2.5 : 1;
    for (const HeatmapBox& box : at_.boxes) {
      absl::StrAppendFormat(
          &out,
          "<rect class=\"%c%d\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" "
          "rx=\"%s\"><title>%s</title></rect>\n",
          box.op, at_.Shade(box), Coordinate(at_.X(box.start), 2),
          Coordinate(at_.Y(box.rank)), Coordinate(at_.Width(box), 2),
          Coordinate(at_.row), Coordinate(std::min(radius, at_.Width(box) / 4)),
          Tooltip(box));
    }
  } else {
    // One path a colour: a third of the bytes.
    std::map<std::pair<char, int>, std::string> paths;
    for (const HeatmapBox& box : at_.boxes) {
      absl::StrAppendFormat(&paths[{box.op, at_.Shade(box)}],
                            "M%s %sh%sv%sh-%sz", Coordinate(at_.X(box.start)),
                            Coordinate(at_.Y(box.rank)),
                            Coordinate(at_.Width(box), 2), Coordinate(at_.row),
                            Coordinate(at_.Width(box), 2));
    }
    for (const auto& [look, path] : paths) {
      absl::StrAppendFormat(&out, "<path class=\"%c%d\" d=\"%s\"/>\n",
                            look.first, look.second, path);
    }
  }
  std::string marks;
  for (const HeatmapBox& box : at_.boxes) {
    const double thick = at_.Underline(box);
    if (thick == 0) continue;
    absl::StrAppendFormat(&marks, "M%s %sh%sv%sh-%sz",
                          Coordinate(at_.X(box.start)),
                          Coordinate(at_.Y(box.rank) + at_.row - thick),
                          Coordinate(at_.Width(box), 2), Coordinate(thick),
                          Coordinate(at_.Width(box), 2));
  }
  if (!marks.empty()) {
    absl::StrAppendFormat(&out, "<path class=\"chunk\" d=\"%s\"/>\n", marks);
  }
}

void Drawing::DrawNumbers(std::string& out) const {
  const double size = at_.NumberSize();
  std::map<absl::string_view, std::string> of_color;
  for (const HeatmapBox& box : at_.boxes) {
    if (!at_.NumberFits(box, size)) continue;
    absl::StrAppendFormat(
        &of_color[ColorOf(box.op, at_.Shade(box)).text],
        "<text x=\"%s\" y=\"%s\">%d</text>\n",
        Coordinate((at_.X(box.start) + at_.X(box.end) - 1) / 2),
        Coordinate(at_.Y(box.rank) + at_.row / 2 + size * kBelowMiddle),
        box.micro_batch);
  }
  for (const auto& [color, texts] : of_color) {
    absl::StrAppendFormat(&out,
                          "<g class=\"n n%s\" style=\"font-size:%spx\"><style>"
                          ".hm .n%s text{fill:%s}</style>\n%s</g>\n",
                          color.substr(1), Coordinate(size), color.substr(1),
                          color, texts);
  }
}

void Drawing::DrawStepEnd(std::string& out) const {
  if (at_.cut || !(at_.step_end > at_.last)) return;
  const double x = at_.X(at_.last), width = at_.X(at_.step_end) - x;
  absl::StrAppendFormat(
      &out,
      "<rect class=\"end\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">"
      "<title>%s of the step lie outside the commands: barrier, apply and the "
      "way to the next step</title></rect>\n",
      Coordinate(x), Coordinate(at_.top), Coordinate(std::max(width, 1.0)),
      Coordinate(at_.Bottom() - at_.top), Time(at_.step_end - at_.last));
  if (width < 15 || at_.Bottom() - at_.top < 100) return;
  const double middle_x = x + width / 2 + 4;
  const double middle_y = (at_.top + at_.Bottom()) / 2;
  absl::StrAppendFormat(
      &out,
      "<text class=\"endtext mid\" x=\"%s\" y=\"%s\" "
      "transform=\"rotate(-90 %s %s)\">barrier + apply</text>\n",
      Coordinate(middle_x), Coordinate(middle_y), Coordinate(middle_x),
      Coordinate(middle_y));
}

void Drawing::DrawAxis(std::string& out) const {
  const AxisUnit unit = UnitOf(at_.span, options_.unit);
  for (const double tick : LinearTicks(0, at_.span * unit.scale, 10)) {
    const double x = at_.X(at_.origin + tick / unit.scale);
    absl::StrAppendFormat(
        &out,
        "<line class=\"grid\" x1=\"%s\" x2=\"%s\" y1=\"%s\" y2=\"%s\"/>"
        "<text class=\"soft mid\" x=\"%s\" y=\"%s\">%s</text>\n",
        Coordinate(x), Coordinate(x), Coordinate(at_.top),
        Coordinate(at_.Bottom() + 5), Coordinate(x),
        Coordinate(at_.Bottom() + 19), ShortNumber(tick));
  }
  absl::StrAppendFormat(
      &out,
      "<text class=\"soft\" x=\"%s\" y=\"%s\" text-anchor=\"end\">%s"
      "</text>\n",
      Coordinate(kHeatmapWidth), Coordinate(at_.Bottom() + 19),
      unit.name.empty() ? "time" : unit.name);
  if (!at_.cut) return;
  absl::StrAppendFormat(
      &out,
      "<text class=\"soft\" x=\"%s\" y=\"%s\">Only the first %s of %s: "
      "the step has too many commands to draw them all.</text>\n",
      Coordinate(at_.left), Coordinate(at_.Bottom() + 37), Time(at_.span),
      Time(at_.step_end - at_.origin));
}

}  // namespace

std::string HeatmapSvg(std::vector<HeatmapBox> boxes,
                       const HeatmapOptions& options) {
  const HeatmapLayout layout = LayOut(std::move(boxes), options);
  return Drawing(layout, options).Draw();
}

}  // namespace penstock::client::report
