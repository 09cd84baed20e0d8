#include "client/report/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/report/json_fields.h"

namespace penstock::client::report {
namespace {

using nlohmann::json;

constexpr int64_t kWarmUpSteps = 2;
constexpr absl::string_view kLetters = "FBIW";

// Integers of the trace are small; others are left to the picture to drop.
int Small(int64_t value) {
  return static_cast<int>(
      std::clamp<int64_t>(value, -1, std::numeric_limits<int>::max()));
}

// From the first command's start to the last one's end, in seconds.
double SpanOf(const TracedStep& step) {
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const HeatmapBox& box : step.boxes) {
    first = std::min(first, box.start);
    last = std::max(last, box.end);
  }
  return first <= last ? last - first : 0;
}

}  // namespace

absl::StatusOr<std::vector<TracedStep>> ParseTrace(absl::string_view text,
                                                   absl::string_view file) {
  const absl::StatusOr<json> parsed = ParseJson(text, file);
  if (!parsed.ok()) return parsed.status();
  absl::Status status;
  const json* events =
      Fields(*parsed, std::string(file), status).Array("traceEvents");
  std::map<int64_t, TracedStep> steps;
  for (size_t i = 0; events != nullptr && i < events->size(); ++i) {
    const Fields event((*events)[i],
                       absl::StrCat(file, ": traceEvents[", i, "]"), status);
    const std::string phase = event.Text("ph");
    if (phase == "M" && event.Text("name") == "thread_name") continue;
    const json* inner = event.Object("args");
    if (phase != "X" || inner == nullptr) {
      event.Fault(absl::StrCat("an event of phase \"", phase, "\" named \"",
                               event.Text("name"),
                               "\" that is neither a command nor a rank's "
                               "name; was trace.json written by another "
                               "release?"));
      break;
    }
    const Fields args(*inner, event.Where("args"), status);
    const auto step = args.Integer("step");
    const auto stage = args.Integer("stage");
    const auto micro_batch = args.Integer("micro_batch");
    if (!step || !stage || !micro_batch) {
      args.Fault("a command without `step`, `stage` or `micro_batch`");
      break;
    }
    const auto start = event.Number("ts");
    const auto duration = event.Number("dur");
    const auto rank = event.Integer("tid");
    const std::string op = event.Text("cat");
    if (!start || !duration || !rank || op.size() != 1 ||
        !absl::StrContains(kLetters, op)) {
      event.Fault(
          "a command without `ts`, `dur`, `tid` or letter of F, B, I, W in "
          "`cat`");
      break;
    }
    TracedStep& traced = steps[*step];
    traced.step = *step;
    traced.boxes.push_back({.rank = Small(*rank),
                            .op = op[0],
                            .stage = Small(*stage),
                            .micro_batch = Small(*micro_batch),
                            .start = *start * 1e-6,
                            .end = (*start + *duration) * 1e-6});
  }
  if (!status.ok()) return status;
  std::vector<TracedStep> ordered;
  for (auto& [number, step] : steps) ordered.push_back(std::move(step));
  return ordered;
}

bool IsWarmUp(const TracedStep& step) { return step.step <= kWarmUpSteps; }

const TracedStep* SteadyStep(const std::vector<TracedStep>& steps) {
  size_t most = 0;
  for (const TracedStep& step : steps) most = std::max(most, step.boxes.size());
  std::vector<const TracedStep*> whole, warm;
  for (const TracedStep& step : steps) {
    if (step.boxes.size() < most) continue;
    whole.push_back(&step);
    if (!IsWarmUp(step)) warm.push_back(&step);
  }
  std::vector<const TracedStep*>& chosen = warm.empty() ? whole : warm;
  if (chosen.empty()) return nullptr;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const TracedStep* a, const TracedStep* b) {
                     return SpanOf(*a) < SpanOf(*b);
                   });
  return chosen[(chosen.size() - 1) / 2];
}

}  // namespace penstock::client::report
