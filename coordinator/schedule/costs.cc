#include "coordinator/schedule/costs.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {
namespace {

bool IsTime(double time) { return std::isfinite(time) && time >= 0; }

bool IsSize(int64_t bytes) { return bytes >= 0 && bytes <= kMaxBytes; }

bool AreSizes(const MessageBytes& bytes) {
  return IsSize(bytes.activation) && IsSize(bytes.gradient) &&
         IsSize(bytes.tied);
}

absl::Status CheckCount(absl::string_view what, size_t given, int expected) {
  if (static_cast<int>(given) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", given, " given, the schedule has ", expected));
}

}  // namespace

absl::Status CheckCosts(const Costs& costs, int stages) {
  for (int s = 0; s < static_cast<int>(costs.stages.size()); ++s) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kBackwardInput,
                        Op::kBackwardWeight}) {
      if (!IsTime(costs.stages[s].of(op))) {
        return absl::InvalidArgumentError(
            absl::StrCat("costs: a time of stage ", s, " is ",
                         costs.stages[s].of(op), ", must be at least 0"));
      }
    }
  }
  if (!IsTime(costs.latency) || !IsTime(costs.seconds_per_byte) ||
      !IsTime(costs.tied_add)) {
    return absl::InvalidArgumentError(
        "costs: latency, time per byte and tied add must be at least 0");
  }
  if (!AreSizes(costs.bytes)) {
    return absl::InvalidArgumentError(
        "costs: message sizes are 0 to 2^44 bytes");
  }
  return CheckCount("costs: stages", costs.stages.size(), stages);
}

absl::Status CheckMemory(const Memory& memory, int stages, int ranks) {
  for (const StageBytes& stage : memory.stages) {
    if (!IsSize(stage.held_until_input) || !IsSize(stage.held_until_weight)) {
      return absl::InvalidArgumentError(
          "memory: activation sizes are 0 to 2^44 bytes");
    }
    if (memory.places == Places::kOwn &&
        stage.held_until_weight < stage.held_until_input) {
      return absl::InvalidArgumentError(
          "memory: a stage's own place is freed by W, not by I");
    }
  }
  if (!AreSizes(memory.slot)) {
    return absl::InvalidArgumentError("memory: slot sizes are 0 to 2^44 bytes");
  }
  if (!memory.stages.empty()) {
    const absl::Status status =
        CheckCount("memory: stages", memory.stages.size(), stages);
    if (!status.ok()) return status;
  }
  if (memory.limits.empty()) return absl::OkStatus();
  return CheckCount("memory: ranks with limits", memory.limits.size(), ranks);
}

}  // namespace penstock::coordinator::schedule
