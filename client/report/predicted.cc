#include "client/report/predicted.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/report/json_fields.h"

namespace penstock::client::report {
namespace {

using nlohmann::json;

// Of ["0F3", start, end]; false where it is something else.
bool ReadCommand(const json& command, HeatmapBox& box) {
  if (!command.is_array() || command.size() != 3 || !command[0].is_string() ||
      !command[1].is_number() || !command[2].is_number()) {
    return false;
  }
  const auto& name = command[0].get_ref<const std::string&>();
  const size_t letter = name.find_first_of("FBIW");
  if (letter == std::string::npos) return false;
  const absl::string_view view = name;
  box.op = name[letter];
  box.start = command[1].get<double>();
  box.end = command[2].get<double>();
  return absl::SimpleAtoi(view.substr(0, letter), &box.stage) &&
         absl::SimpleAtoi(view.substr(letter + 1), &box.micro_batch);
}

void ReadRank(const Fields& rank, PredictedStep& step) {
  const auto number = rank.Integer("rank");
  const json* commands = rank.Array("commands");
  if (!number.has_value() || commands == nullptr) {
    rank.Fault("a rank without `rank` or `commands`");
    return;
  }
  for (size_t i = 0; i < commands->size(); ++i) {
    // Ranks are small; others are left to the picture to drop.
    HeatmapBox box{.rank = static_cast<int>(std::clamp<int64_t>(
                       *number, -1, std::numeric_limits<int>::max()))};
    if (!ReadCommand((*commands)[i], box)) {
      rank.Fault(
          absl::StrCat("commands[", i, "] is not [command, start, end]"));
      return;
    }
    step.boxes.push_back(box);
  }
}

}  // namespace

absl::StatusOr<PredictedStep> ParsePredicted(absl::string_view text,
                                             absl::string_view file) {
  const absl::StatusOr<json> parsed = ParseJson(text, file);
  if (!parsed.ok()) return parsed.status();
  absl::Status status;
  const Fields fields(*parsed, std::string(file), status);
  const auto seconds = fields.Number("step_seconds");
  const auto measured = fields.Number("measured_step_seconds");
  const auto realisation = fields.Number("realisation");
  const json* ranks = fields.Array("ranks");
  if (!seconds || !measured || !realisation || ranks == nullptr) {
    fields.Fault(
        "`step_seconds`, `measured_step_seconds`, `realisation` or `ranks` is "
        "missing");
  }
  if (!status.ok()) return status;
  PredictedStep step{.step_seconds = *seconds,
                     .measured_step_seconds = *measured,
                     .realisation = *realisation};
  for (size_t i = 0; i < ranks->size(); ++i) {
    ReadRank(Fields((*ranks)[i], fields.Where("ranks", i), status), step);
  }
  if (!status.ok()) return status;
  return step;
}

}  // namespace penstock::client::report
