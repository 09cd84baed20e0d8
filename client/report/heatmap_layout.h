// Where everything of a heatmap stands: the arithmetic of heatmap.h.
#ifndef PENSTOCK_CLIENT_REPORT_HEATMAP_LAYOUT_H_
#define PENSTOCK_CLIENT_REPORT_HEATMAP_LAYOUT_H_

#include <map>
#include <set>
#include <vector>

#include "client/report/heatmap.h"

namespace penstock::client::report {

// Pixels of the view box.
inline constexpr double kHeatmapWidth = 1120;
inline constexpr double kTitleHeight = 26;
inline constexpr double kSubtitleHeight = 20;
inline constexpr double kLegendHeight = 34;
// A row of this height has its detail below its label, else beside it, there.
inline constexpr double kLeastRowOfTwoLines = 28;
inline constexpr double kBesideLabel = 54;

// Text, in pixels and shares of its size: no font is measured, these hold for
// the usual sans-serif ones.
inline constexpr double kTextSize = 12;        // Labels and numbers, at most.
inline constexpr double kSoftSize = 11;        // What is less important.
inline constexpr double kSoftCharacter = 6.1;  // Mean width at kSoftSize.
inline constexpr double kDigit = 0.6;          // A digit's width, of the size.
// From a line's middle down to its base line, of the size.
inline constexpr double kBelowMiddle = 0.36;

struct HeatmapLayout {
  std::vector<HeatmapBox> boxes;   // Those that are drawn, by start.
  std::map<int, int> chunk;        // Stage to its number on its rank, from 0.
  int last_chunk = 0;              // The largest of them.
  std::vector<double> busy_share;  // By rank, of the whole step.
  std::set<char> ops;
  int ranks = 0;
  int micro_batches = 0;
  // Times of the boxes' clock: first start, last end, end of the step.
  double origin = 0;
  double last = 0;
  double step_end = 0;
  double span = 1;       // Time that the axis has, from origin.
  bool cut = false;      // It is less than the step.
  bool labelled = true;  // Boxes have numbers and tooltips.
  bool details = false;  // Rows say what they hold.
  double left = 0;       // Pixels to the first row's start.
  double top = 0;
  double row = 0;  // Height of one.
  double gap = 0;  // Between two.

  double X(double time) const;
  double Y(int rank) const { return top + rank * (row + gap); }
  double Bottom() const { return Y(ranks) - gap; }
  // Neighbours are told apart by a pixel between them, where there is room.
  double Width(const HeatmapBox& box) const;
  int Shade(const HeatmapBox& box) const;
  // How thick the line below a box is, in pixels: the later the chunk, the
  // thicker. 0 for first chunks.
  double Underline(const HeatmapBox& box) const;
  // Of the numbers in the boxes: as large as nearly all that can have one
  // allow.
  double NumberSize() const;
  bool NumberFits(const HeatmapBox& box, double size) const;
};

HeatmapLayout LayOut(std::vector<HeatmapBox> boxes,
                     const HeatmapOptions& options);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_HEATMAP_LAYOUT_H_
