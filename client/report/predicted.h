// predicted.json: a step as the schedule promises it, simulated with the
// measured times of the commands.
#ifndef PENSTOCK_CLIENT_REPORT_PREDICTED_H_
#define PENSTOCK_CLIENT_REPORT_PREDICTED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/report/heatmap.h"

namespace penstock::client::report {

struct PredictedStep {
  double step_seconds = 0;           // Of the simulation.
  double measured_step_seconds = 0;  // Median.
  double realisation = 0;            // The first by the second.
  std::vector<HeatmapBox> boxes;     // Seconds since the step's start.
};

// DataLoss for damaged JSON, for members that are missing or have the wrong
// type, and for what is no command: a picture without it would be wrong.
absl::StatusOr<PredictedStep> ParsePredicted(absl::string_view text,
                                             absl::string_view file);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_PREDICTED_H_
