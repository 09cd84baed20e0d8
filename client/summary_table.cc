#include "client/summary_table.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text_table.h"

namespace penstock::client {
namespace {

using nlohmann::json;

// The member at a path of keys, or null.
json At(const json& value, std::initializer_list<const char*> keys) {
  json current = value;
  for (const char* key : keys) {
    if (!current.is_object() || !current.contains(key)) return nullptr;
    current = json(current[key]);
  }
  return current;
}

std::string Number(const json& value, const char* format, double scale = 1) {
  if (!value.is_number()) return "-";
  return absl::StrFormat(*absl::ParsedFormat<'f'>::New(format),
                         value.get<double>() * scale);
}

std::string Bytes(const json& value) {
  if (!value.is_number()) return "-";
  const double bytes = value.get<double>();
  if (bytes < 1 << 20) return absl::StrFormat("%.1f KiB", bytes / 1024);
  if (bytes < 1 << 30) return absl::StrFormat("%.1f MiB", bytes / (1 << 20));
  return absl::StrFormat("%.2f GiB", bytes / (1 << 30));
}

std::string Chunks(const json& stage) {
  std::vector<std::string> parts;
  for (const json& chunk : stage.value("chunks", json::array())) {
    if (chunk.value("embedding", false)) parts.push_back("embedding");
    const json blocks = At(chunk, {"blocks"});
    if (blocks.is_array() && blocks.size() == 2 && blocks[0] != blocks[1]) {
      parts.push_back(absl::StrCat("blocks ", blocks[0].get<int64_t>(), "-",
                                   blocks[1].get<int64_t>() - 1));
    }
    if (chunk.value("head", false)) parts.push_back("head");
  }
  std::string text;
  for (const std::string& part : parts) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", part);
  }
  return text;
}

}  // namespace

std::string SummaryTable(const json& summary) {
  std::vector<std::vector<std::string>> rows = {
      {"", "predicted", "measured"},
      {"bubble rate",
       Number(At(summary, {"bubble_rate", "predicted"}), "%.1f", 100) + " %",
       Number(At(summary, {"bubble_rate", "measured"}), "%.1f", 100) + " %"}};
  std::vector<std::vector<std::string>> stages = {
      {"stage", "layers", "activations predicted", "measured", "all predicted",
       "measured", "in flight", "busy"}};
  for (const json& stage : summary.value("stages", json::array())) {
    stages.push_back({Number(At(stage, {"rank"}), "%.0f"), Chunks(stage),
                      Bytes(At(stage, {"peak_activation_bytes", "predicted"})),
                      Bytes(At(stage, {"peak_activation_bytes", "measured"})),
                      Bytes(At(stage, {"peak_bytes", "predicted"})),
                      Bytes(At(stage, {"peak_bytes", "measured"})),
                      Number(At(stage, {"peak_in_flight"}), "%.0f"),
                      Number(At(stage, {"busy_seconds"}), "%.1f") + " s"});
  }
  return absl::StrCat(
      "loss ", Number(At(summary, {"final_loss"}), "%.4f"), "  validation ",
      Number(At(summary, {"validation_loss"}), "%.4f"), "  ",
      Number(At(summary, {"tokens_per_second"}), "%.0f"), " tokens/s  step ",
      Number(At(summary, {"step_seconds", "p50"}), "%.1f", 1e3),
      " ms  realisation ", Number(At(summary, {"realisation"}), "%.3f"), "\n\n",
      FormatTable(rows), "\n", FormatTable(stages));
}

}  // namespace penstock::client
