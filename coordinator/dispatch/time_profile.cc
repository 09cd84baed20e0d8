#include "coordinator/dispatch/time_profile.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "coordinator/spec/limits.h"
#include "nlohmann/json.hpp"

namespace penstock::coordinator::dispatch {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kStages[] = "stages";
constexpr char kTransfer[] = "transfer";
constexpr char kForward[] = "forward";
constexpr char kBackwardInput[] = "backward_input";
constexpr char kBackwardWeight[] = "backward_weight";
constexpr char kBackward[] = "backward";

absl::Status Wrong(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status CheckFields(const json& object, absl::string_view where,
                         const std::vector<std::string>& known) {
  if (!object.is_object()) return Wrong(where, "expected an object");
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Wrong(where,
                 absl::StrCat("unknown field ", common::text::Quoted(name)));
  }
  return absl::OkStatus();
}

// nullopt: null, or not there.
absl::StatusOr<std::optional<double>> Time(const json& stage,
                                           absl::string_view where,
                                           const char* name) {
  const auto it = stage.find(name);
  if (it == stage.end() || it->is_null()) return std::optional<double>();
  const double most = absl::ToDoubleSeconds(spec::kMaxModelledTime);
  if (it->is_number()) {
    const double seconds = it->get<double>();
    if (seconds >= 0 && seconds <= most) return std::optional(seconds);
  }
  return Wrong(absl::StrCat(where, ".", name),
               absl::StrCat("expected seconds from 0 to ", most, ", or null"));
}

absl::StatusOr<planner::ModelledStage> ParseStage(const json& stage,
                                                  absl::string_view where) {
  RETURN_IF_ERROR(CheckFields(
      stage, where, {kForward, kBackwardInput, kBackwardWeight, kBackward}));
  ASSIGN_OR_RETURN(const auto forward, Time(stage, where, kForward));
  ASSIGN_OR_RETURN(const auto input, Time(stage, where, kBackwardInput));
  ASSIGN_OR_RETURN(const auto weight, Time(stage, where, kBackwardWeight));
  ASSIGN_OR_RETURN(const auto backward, Time(stage, where, kBackward));
  if (!forward.has_value()) return Wrong(where, "has no time of forward");
  const bool split = input.has_value() && weight.has_value();
  if (!split && !backward.has_value()) {
    return Wrong(where,
                 "has no time of backward, nor both of backward_input and "
                 "backward_weight");
  }
  const double half = backward.value_or(0) / 2;
  return planner::ModelledStage{
      .times = {.forward = *forward,
                .backward_input = split ? *input : half,
                .backward_weight = split ? *weight : half,
                .backward = backward},
      .split = split};
}

}  // namespace

std::string TimeProfile(const schedule::Costs& measured) {
  ordered_json stages = ordered_json::array();
  for (const schedule::StageTimes& times : measured.stages) {
    // Where only the full backward was timed, MeasuredCosts() has zeros.
    const bool split = !times.backward.has_value() ||
                       times.backward_input > 0 || times.backward_weight > 0;
    const auto time = [](bool known, double seconds) {
      return known ? ordered_json(seconds) : ordered_json(nullptr);
    };
    stages.push_back({{kForward, times.forward},
                      {kBackwardInput, time(split, times.backward_input)},
                      {kBackwardWeight, time(split, times.backward_weight)},
                      {kBackward, time(times.backward.has_value(),
                                       times.backward.value_or(0))}});
  }
  const ordered_json profile = {{kStages, stages}, {kTransfer, nullptr}};
  return profile.dump(2) + "\n";
}

absl::StatusOr<std::vector<planner::ModelledStage>> ParseTimeProfile(
    absl::string_view text) {
  const json profile = json::parse(text.begin(), text.end(), nullptr,
                                   /*allow_exceptions=*/false);
  if (profile.is_discarded()) return Wrong("profile", "it is no JSON");
  RETURN_IF_ERROR(CheckFields(profile, "profile", {kStages, kTransfer}));
  const auto transfer = profile.find(kTransfer);
  if (transfer != profile.end() && !transfer->is_null()) {
    return Wrong(kTransfer, "expected null; give virtual.transfer");
  }
  const auto stages = profile.find(kStages);
  if (stages == profile.end() || !stages->is_array() || stages->empty()) {
    return Wrong(kStages, "expected a list with an object for each stage");
  }
  std::vector<planner::ModelledStage> parsed;
  for (size_t i = 0; i < stages->size(); ++i) {
    ASSIGN_OR_RETURN(
        planner::ModelledStage stage,
        ParseStage((*stages)[i], absl::StrCat(kStages, "[", i, "]")));
    parsed.push_back(stage);
  }
  return parsed;
}

}  // namespace penstock::coordinator::dispatch
