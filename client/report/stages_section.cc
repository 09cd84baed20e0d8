#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "client/report/sections.h"
#include "client/report/text.h"
#include "common/ids/result_names.h"

namespace penstock::client::report {
namespace {

constexpr double kBarsWidth = 1080;
constexpr double kBarsLeft = 62;
constexpr double kBarsRight = 210;
constexpr double kBarHeight = 18;
constexpr size_t kMostRanks = 256;

// Rows of bars: activations and the rest as measured, the prediction as a line.
std::string MemoryBars(absl::Span<const RankSummary> stages) {
  double most = 0;
  for (const RankSummary& rank : stages) {
    most = std::max({most, rank.peak_bytes.predicted.value_or(0),
                     rank.peak_bytes.measured.value_or(0)});
  }
  if (!(most > 0) || !std::isfinite(most)) return "";
  const double pitch = stages.size() > 16 ? 22 : 28;
  const auto length = [&](double bytes) {
    return std::clamp(bytes / most, 0.0, 1.0) *
           (kBarsWidth - kBarsLeft - kBarsRight);
  };
  std::string out = absl::StrFormat(
      "<svg class=\"chart\" viewBox=\"0 0 %s %s\" role=\"img\" "
      "aria-label=\"Memory of each rank\">\n",
      Coordinate(kBarsWidth), Coordinate(pitch * stages.size() + 4));
  double y = 2;
  for (const RankSummary& rank : stages) {
    const double everything = rank.peak_bytes.measured.value_or(0);
    const double activations =
        std::min(rank.peak_activation_bytes.measured.value_or(0), everything);
    const double middle = y + kBarHeight / 2 + 4;
    absl::StrAppendFormat(
        &out,
        "<text class=\"tick\" x=\"0\" y=\"%s\">rank %d</text>\n"
        "<rect class=\"track\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" "
        "rx=\"3\"/>\n",
        Coordinate(middle), rank.rank, Coordinate(kBarsLeft), Coordinate(y),
        Coordinate(length(most)), Coordinate(kBarHeight));
    if (everything > 0) {
      absl::StrAppendFormat(
          &out,
          "<rect class=\"bar-rest\" x=\"%s\" y=\"%s\" width=\"%s\" "
          "height=\"%s\" rx=\"3\"/>\n<rect class=\"bar-act\" x=\"%s\" "
          "y=\"%s\" width=\"%s\" height=\"%s\" rx=\"3\"/>\n",
          Coordinate(kBarsLeft), Coordinate(y), Coordinate(length(everything)),
          Coordinate(kBarHeight), Coordinate(kBarsLeft), Coordinate(y),
          Coordinate(length(activations)), Coordinate(kBarHeight));
    }
    if (rank.peak_bytes.predicted.has_value()) {
      const double x = kBarsLeft + length(*rank.peak_bytes.predicted);
      absl::StrAppendFormat(
          &out, "<path class=\"predicted\" d=\"M%s %sv%s\"/>\n", Coordinate(x),
          Coordinate(y - 2), Coordinate(kBarHeight + 4));
    }
    absl::StrAppendFormat(
        &out,
        "<text class=\"tick\" x=\"%s\" y=\"%s\" text-anchor=\"end\">%s"
        "</text>\n",
        Coordinate(kBarsWidth), Coordinate(middle),
        rank.peak_bytes.measured.has_value()
            ? absl::StrCat(Bytes(everything), ", ",
                           rank.peak_activation_bytes.measured.has_value()
                               ? Bytes(activations)
                               : "–",
                           " activations")
            : absl::StrCat("predicted ",
                           Bytes(rank.peak_bytes.predicted.value_or(0))));
    y += pitch;
  }
  absl::StrAppend(&out, "</svg>\n");
  return out;
}

std::string BytesCell(const std::optional<double>& bytes) {
  if (!bytes.has_value()) return "<td class=\"num\">–</td>";
  return absl::StrFormat("<td class=\"num\" title=\"%s bytes\">%s</td>",
                         Count(static_cast<int64_t>(*bytes)), Bytes(*bytes));
}

// Predicted, measured, and whether they are the same to the byte.
std::string PredictionCells(const Prediction& bytes) {
  std::string verdict = "<td></td>";
  if (bytes.predicted.has_value() && bytes.measured.has_value()) {
    const double predicted = *bytes.predicted, measured = *bytes.measured;
    if (predicted == measured) {
      verdict = "<td class=\"ok\" title=\"the same to the byte\">exact</td>";
    } else {
      verdict = absl::StrFormat(
          "<td class=\"off\" title=\"%s bytes\">%s</td>",
          Count(static_cast<int64_t>(measured - predicted)),
          predicted > 0
              ? absl::StrFormat("%+.2f %%", 100 * (measured / predicted - 1))
              : "not predicted");
    }
  }
  return absl::StrCat(BytesCell(bytes.predicted), BytesCell(bytes.measured),
                      verdict);
}

std::string Row(const RankSummary& rank, const std::string& device,
                double all_seconds) {
  std::string where = EscapedName(rank.name);
  if (!device.empty()) {
    absl::StrAppend(&where, " · ", EscapedName(device));
  }
  std::string out = absl::StrFormat(
      "<tr><th>%d</th><td title=\"%s\">%s</td><td>%s</td>", rank.rank,
      Escape(rank.host.empty()
                 ? Truncated(rank.name, kMostName)
                 : absl::StrCat(Truncated(rank.name, kMostName), " on ",
                                Truncated(rank.host, kMostName))),
      where, Truncated(LayersText(rank.chunks), kMostName));
  absl::StrAppend(&out, PredictionCells(rank.peak_activation_bytes),
                  PredictionCells(rank.peak_bytes));
  absl::StrAppendFormat(
      &out, "<td class=\"num\">%s</td>",
      rank.peak_in_flight.has_value() ? Count(*rank.peak_in_flight) : "–");
  if (rank.busy_seconds.has_value() && all_seconds > 0) {
    absl::StrAppendFormat(&out, "<td class=\"num\" title=\"%s\">%.0f %%</td>",
                          Seconds(*rank.busy_seconds),
                          100 * *rank.busy_seconds / all_seconds);
  } else if (rank.busy_seconds.has_value()) {
    absl::StrAppendFormat(&out, "<td class=\"num\">%s</td>",
                          Seconds(*rank.busy_seconds));
  } else {
    absl::StrAppend(&out, "<td class=\"num\">–</td>");
  }
  absl::StrAppend(&out, "</tr>\n");
  return out;
}

}  // namespace

std::string StagesSection(const RunFiles& files) {
  if (!files.summary.has_value() || files.summary->stages.empty()) return "";
  const RunSummary& summary = *files.summary;
  double all_seconds = 0;
  for (const StepMetrics& step : files.metrics) {
    if (std::isfinite(step.step_seconds)) all_seconds += step.step_seconds;
  }
  const auto shown = absl::MakeConstSpan(summary.stages).subspan(0, kMostRanks);
  std::string rows;
  for (size_t i = 0; i < shown.size(); ++i) {
    rows += Row(shown[i], i < summary.devices.size() ? summary.devices[i] : "",
                all_seconds);
  }
  return absl::StrCat(
      "<section class=\"card\">\n<h2>Stages and their memory</h2>\n"
      "<p class=\"sub key\"><i class=\"k-act\"></i>activations at their peak "
      "<i class=\"k-rest\"></i>parameters, gradients, optimizer, work space "
      "and "
      "transfer slots <i class=\"k-pred\"></i>predicted before the start</p>\n",
      "<div class=\"scroll\">", MemoryBars(shown), "</div>\n",
      "<div class=\"scroll\"><table>\n<thead><tr><th rowspan=\"2\">rank</th>"
      "<th rowspan=\"2\">stage</th><th rowspan=\"2\">layers</th>"
      "<th colspan=\"3\" class=\"group\">activations at peak</th>"
      "<th colspan=\"3\" class=\"group\">everything</th>"
      "<th rowspan=\"2\" class=\"num\">peak in flight</th>"
      "<th rowspan=\"2\" class=\"num\">busy</th></tr>\n<tr>"
      "<th class=\"num\">predicted</th><th class=\"num\">measured</th><th></th>"
      "<th class=\"num\">predicted</th><th class=\"num\">measured</th><th></th>"
      "</tr></thead>\n<tbody>\n",
      rows, "</tbody></table></div>\n",
      MoreIn(common::ids::kSummaryFile, summary.stages.size() - shown.size()),
      "</section>\n");
}

}  // namespace penstock::client::report
