#include "coordinator/dispatch/skipped_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::dispatch {

std::optional<SkippedSteps::Run> SkippedSteps::Next(int64_t step,
                                                    const std::string& kind) {
  if (kind == run_.kind) {
    if (!kind.empty()) ++run_.count;
    return std::nullopt;
  }
  Run ended = std::exchange(
      run_, {.kind = kind, .first = step, .count = kind.empty() ? 0 : 1});
  return ended.count > 1 ? std::optional<Run>(std::move(ended)) : std::nullopt;
}

std::string Describe(const SkippedSteps::Run& run) {
  return absl::StrCat("steps ", run.first, " to ", run.first + run.count - 1,
                      ", ", run.count, " in a row, were skipped");
}

}  // namespace penstock::coordinator::dispatch
