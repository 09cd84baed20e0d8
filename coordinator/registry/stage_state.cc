#include "coordinator/registry/stage_state.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::coordinator::registry {
namespace {

using v1::Stage;

const std::vector<std::pair<Stage::State, Stage::State>>& Transitions() {
  static const auto* const table =
      new std::vector<std::pair<Stage::State, Stage::State>>{
          {Stage::STATE_REGISTERED, Stage::STATE_ASSIGNED},  // 2
          {Stage::STATE_ASSIGNED, Stage::STATE_READY},       // 3
          {Stage::STATE_READY, Stage::STATE_RUNNING},        // 4
          {Stage::STATE_ASSIGNED, Stage::STATE_REGISTERED},  // 5
          {Stage::STATE_READY, Stage::STATE_REGISTERED},     // 5
          {Stage::STATE_RUNNING, Stage::STATE_REGISTERED},   // 5
          {Stage::STATE_REGISTERED, Stage::STATE_LOST},      // 6
          {Stage::STATE_ASSIGNED, Stage::STATE_LOST},        // 6
          {Stage::STATE_READY, Stage::STATE_LOST},           // 6
          {Stage::STATE_RUNNING, Stage::STATE_LOST},         // 6
      };
  return *table;
}

}  // namespace

absl::Status CheckTransition(Stage::State from, Stage::State to) {
  for (const auto& [a, b] : Transitions()) {
    if (a == from && b == to) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "a stage that is ", StateName(from), " cannot become ", StateName(to)));
}

std::string StateName(Stage::State state) {
  return std::string(absl::StripPrefix(Stage::State_Name(state), "STATE_"));
}

}  // namespace penstock::coordinator::registry
