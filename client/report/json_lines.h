// metrics.jsonl and events.jsonl.
#ifndef PENSTOCK_CLIENT_REPORT_JSON_LINES_H_
#define PENSTOCK_CLIENT_REPORT_JSON_LINES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::client::report {

// A committed step. Values that were not finite are NaN here.
struct StepMetrics {
  int64_t step = 0;
  std::string time;  // RFC 3339
  double loss = 0;   // Nats a token.
  double lr = 0;
  double grad_norm = 0;
  double step_seconds = 0;
  double tokens_per_second = 0;
  std::optional<double> bubble_rate;
  std::optional<double> validation_loss;
  bool skipped = false;
  bool nonfinite = false;  // Some value was.
};

struct JobEvent {
  std::string time;      // RFC 3339
  std::string severity;  // INFO, WARNING, ERROR
  std::string kind;
  std::string message;
  std::string stage;
  int64_t step = 0;
  bool consequence = false;  // It followed from an earlier failure.
};

// Lines in order; empty ones are passed over. DataLoss naming file and line
// for one that is damaged, and for steps that do not increase.
absl::StatusOr<std::vector<StepMetrics>> ParseMetrics(absl::string_view text,
                                                      absl::string_view file);
absl::StatusOr<std::vector<JobEvent>> ParseEvents(absl::string_view text,
                                                  absl::string_view file);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_JSON_LINES_H_
