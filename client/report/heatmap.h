// The picture of a pipeline at work: ranks x time, a box for each command.
// The report shows a measured step with it, `penstock simulate -o svg` a
// simulated one.
#ifndef PENSTOCK_CLIENT_REPORT_HEATMAP_H_
#define PENSTOCK_CLIENT_REPORT_HEATMAP_H_

#include <optional>
#include <string>
#include <vector>

namespace penstock::client::report {

// One command as it ran.
struct HeatmapBox {
  int rank = 0;
  char op = 'F';  // F, B, I, W; others are drawn grey.
  int stage = 0;  // The virtual stage.
  int micro_batch = 0;
  double start = 0;  // Seconds, or the simulator's unit; end >= start.
  double end = 0;
};

// What stands left of a rank's row.
struct HeatmapRow {
  std::string label;   // "rank 0"
  std::string detail;  // "embedding, blocks 0-1"; may be empty.
};

struct HeatmapOptions {
  enum class Unit {
    kSeconds,   // The axis is in s, ms or µs.
    kAbstract,  // The axis has bare numbers.
  };

  enum class Frame {
    kInline,  // Part of a page, whose background and margins it takes.
    kFile,    // A file of its own: with a background, margins and a size.
  };

  std::string title;     // Above the picture; may be empty.
  std::string subtitle;  // Below the title; may be empty.
  // By rank. Those that are missing are called "rank N".
  std::vector<HeatmapRow> rows;
  Unit unit = Unit::kSeconds;
  Frame frame = Frame::kInline;
  // When the step is over: what lies between the last command and this is
  // marked as barrier and apply. On the boxes' clock.
  std::optional<double> step_end;
  // The axis is at least this long, so that pictures one above the other have
  // one scale.
  double least_span = 0;
  // Tells the pictures of one page apart: letters and digits.
  std::string id = "hm";
};

// A complete SVG document that also stands inline in HTML: its own style,
// light and dark, no script, no reference to anything outside. Time starts at
// the first box. Idle time is hatched, a rank's later chunks are underlined.
// With very many boxes numbers and tooltips are left out, and beyond 16,000 in
// a page and 64,000 in a file of its own only the step's beginning is drawn,
// which the picture then says. Boxes of negative rank, micro-batch or length,
// or with times that are not finite, are not drawn; no boxes give a picture
// that says so.
std::string HeatmapSvg(std::vector<HeatmapBox> boxes,
                       const HeatmapOptions& options);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_HEATMAP_H_
