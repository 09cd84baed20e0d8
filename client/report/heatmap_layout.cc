#include "client/report/heatmap_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/report/op_colors.h"
#include "common/text/utf8.h"

namespace penstock::client::report {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kMostMicroBatches = 1 << 20;
constexpr size_t kMostBoxes = 16000;  // Of a part of a page,
constexpr size_t kMostBoxesOfFile = 64000;
constexpr size_t kMostLabelledBoxes = 3000;
constexpr double kRight = 58;  // Pixels of the busy shares.
constexpr double kLabelsOnly = 62;
constexpr double kLeastRowWithDetail = 16;
constexpr double kLeastNumberSize = 9;
// Left of the rows, where they say what they hold.
constexpr double kLeastDetail = 150;
constexpr double kMostDetail = 220;
constexpr double kDetailMargin = 12;

bool CanBeDrawn(const HeatmapBox& box) {
  return box.rank >= 0 && box.rank < kMostRanks && box.micro_batch >= 0 &&
         box.micro_batch < kMostMicroBatches && std::isfinite(box.start) &&
         std::isfinite(box.end) && box.end >= box.start;
}

std::map<int, int> ChunksOf(const std::vector<HeatmapBox>& boxes) {
  std::map<int, std::set<int>> of_rank;
  for (const HeatmapBox& box : boxes) of_rank[box.rank].insert(box.stage);
  std::map<int, int> chunks;
  for (const auto& [rank, stages] : of_rank) {
    int chunk = 0;
    for (const int stage : stages) chunks[stage] = chunk++;
  }
  return chunks;
}

void MeasureTimes(const HeatmapOptions& options, HeatmapLayout& layout) {
  layout.origin = layout.last = layout.boxes.front().start;
  for (HeatmapBox& box : layout.boxes) {
    // It becomes the name of a class.
    if (absl::string_view("FBIW").find(box.op) == absl::string_view::npos) {
      box.op = 'X';
    }
    layout.ops.insert(box.op);
    layout.ranks = std::max(layout.ranks, box.rank + 1);
    layout.micro_batches = std::max(layout.micro_batches, box.micro_batch + 1);
    layout.last = std::max(layout.last, box.end);
  }
  layout.step_end =
      std::max(layout.last, options.step_end.value_or(layout.last));
  layout.span = layout.step_end - layout.origin;
  layout.busy_share.resize(layout.ranks);
  if (!(layout.span > 0)) return;
  for (const HeatmapBox& box : layout.boxes) {
    layout.busy_share[box.rank] += (box.end - box.start) / layout.span;
  }
}

void MeasurePlaces(const HeatmapOptions& options, HeatmapLayout& layout) {
  layout.row = std::clamp(352.0 / layout.ranks, 7.0, 44.0);
  layout.gap = layout.row > 24 ? 6 : layout.row > 12 ? 3 : 1;
  layout.top = kLegendHeight;
  if (!options.title.empty()) layout.top += kTitleHeight;
  if (!options.subtitle.empty()) layout.top += kSubtitleHeight;
  layout.left = kLabelsOnly;
  if (layout.row < kLeastRowWithDetail) return;
  for (const HeatmapRow& row : options.rows) {
    if (row.detail.empty()) continue;
    layout.details = true;
    const auto size =
        static_cast<double>(common::text::CharacterCount(row.detail));
    // Beside the label, or below it.
    const double from = layout.row < kLeastRowOfTwoLines ? kBesideLabel : 0;
    layout.left = std::clamp(from + kSoftCharacter * size + kDetailMargin,
                             std::max(layout.left, kLeastDetail), kMostDetail);
  }
}

}  // namespace

double HeatmapLayout::X(double time) const {
  return left + (time - origin) / span * (kHeatmapWidth - left - kRight);
}

double HeatmapLayout::Width(const HeatmapBox& box) const {
  const double full = X(box.end) - X(box.start);
  return std::max(full > 5 ? full - 1 : full * 0.85, 0.2);
}

double HeatmapLayout::Underline(const HeatmapBox& box) const {
  const int number = chunk.at(box.stage);
  if (number == 0) return 0;
  const double step = std::min(0.09, 0.36 / last_chunk);
  return std::max(1.0, row * step * number);
}

int HeatmapLayout::Shade(const HeatmapBox& box) const {
  return ShadeOf(box.micro_batch, micro_batches);
}

double HeatmapLayout::NumberSize() const {
  const auto fitting = [this](double size) {
    return std::count_if(
        boxes.begin(), boxes.end(),
        [&](const HeatmapBox& box) { return NumberFits(box, size); });
  };
  const auto most = fitting(kLeastNumberSize);
  double size = std::min(kTextSize, row - 4);
  while (size > kLeastNumberSize && 10 * fitting(size) < 9 * most) size -= 1;
  return std::max(size, kLeastNumberSize);
}

bool HeatmapLayout::NumberFits(const HeatmapBox& box, double size) const {
  const auto digits = static_cast<double>(absl::StrCat(box.micro_batch).size());
  return size < row && X(box.end) - X(box.start) >= kDigit * size * digits + 3;
}

HeatmapLayout LayOut(std::vector<HeatmapBox> boxes,
                     const HeatmapOptions& options) {
  HeatmapLayout layout;
  layout.boxes = std::move(boxes);
  layout.boxes.erase(
      std::remove_if(layout.boxes.begin(), layout.boxes.end(),
                     [](const HeatmapBox& box) { return !CanBeDrawn(box); }),
      layout.boxes.end());
  if (layout.boxes.empty()) return layout;
  std::stable_sort(layout.boxes.begin(), layout.boxes.end(),
                   [](const HeatmapBox& a, const HeatmapBox& b) {
                     return a.start < b.start;
                   });
  MeasureTimes(options, layout);
  layout.chunk = ChunksOf(layout.boxes);
  for (const auto& [stage, chunk] : layout.chunk) {
    layout.last_chunk = std::max(layout.last_chunk, chunk);
  }
  const size_t most = options.frame == HeatmapOptions::Frame::kFile
                          ? kMostBoxesOfFile
                          : kMostBoxes;
  if (layout.boxes.size() > most) {
    layout.cut = true;
    layout.boxes.resize(most);
    layout.span = layout.boxes.back().start - layout.origin;
  } else if (std::isfinite(options.least_span)) {
    layout.span = std::max(layout.span, options.least_span);
  }
  if (!(layout.span > 0)) layout.span = 1;
  layout.labelled = layout.boxes.size() <= kMostLabelledBoxes;
  MeasurePlaces(options, layout);
  return layout;
}

}  // namespace penstock::client::report
