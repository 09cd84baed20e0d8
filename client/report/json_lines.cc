#include "client/report/json_lines.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/report/json_fields.h"

namespace penstock::client::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Calls `read` with each line's members; its faults and those of the JSON end
// the reading.
template <typename Read>
absl::Status ForEachLine(absl::string_view text, absl::string_view file,
                         Read read) {
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const auto parsed = ParseJson(line, file, number);
    if (!parsed.ok()) return parsed.status();
    absl::Status status;
    read(Fields(*parsed, absl::StrCat(file, ":", number), status));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StepMetrics>> ParseMetrics(absl::string_view text,
                                                      absl::string_view file) {
  std::vector<StepMetrics> steps;
  const absl::Status status = ForEachLine(text, file, [&](const Fields& line) {
    StepMetrics metrics;
    const auto step = line.Integer("step");
    if (!step.has_value()) return line.Fault("`step` is missing");
    metrics.step = *step;
    metrics.time = line.Text("time");
    metrics.loss = line.Number("loss").value_or(kNan);
    metrics.lr = line.Number("lr").value_or(kNan);
    metrics.grad_norm = line.Number("grad_norm").value_or(kNan);
    metrics.step_seconds = line.Number("step_seconds").value_or(kNan);
    metrics.tokens_per_second = line.Number("tokens_per_second").value_or(kNan);
    metrics.bubble_rate = line.Number("bubble_rate");
    metrics.validation_loss = line.Number("validation_loss");
    metrics.skipped = line.Flag("skipped");
    const auto* nonfinite = line.Array("nonfinite");
    metrics.nonfinite = nonfinite != nullptr && !nonfinite->empty();
    if (!steps.empty() && metrics.step <= steps.back().step) {
      return line.Fault(absl::StrCat("step ", metrics.step, " after step ",
                                     steps.back().step));
    }
    steps.push_back(std::move(metrics));
  });
  if (!status.ok()) return status;
  return steps;
}

absl::StatusOr<std::vector<JobEvent>> ParseEvents(absl::string_view text,
                                                  absl::string_view file) {
  std::vector<JobEvent> events;
  const absl::Status status = ForEachLine(text, file, [&](const Fields& line) {
    events.push_back({.time = line.Text("time"),
                      .severity = line.Text("severity"),
                      .kind = line.Text("kind"),
                      .message = line.Text("message"),
                      .stage = line.Text("stage"),
                      .step = line.Integer("step").value_or(0),
                      .consequence = line.Flag("consequence")});
  });
  if (!status.ok()) return status;
  return events;
}

}  // namespace penstock::client::report
