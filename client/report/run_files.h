// The files of a run directory that the report is made from.
#ifndef PENSTOCK_CLIENT_REPORT_RUN_FILES_H_
#define PENSTOCK_CLIENT_REPORT_RUN_FILES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/report/json_lines.h"
#include "client/report/predicted.h"
#include "client/report/run_summary.h"
#include "client/report/trace.h"

namespace penstock::client::report {

// What is missing in the directory is empty here.
struct RunFiles {
  std::string job_yaml;  // As it stands there.
  std::optional<RunSummary> summary;
  std::vector<StepMetrics> metrics;
  std::vector<JobEvent> events;
  std::vector<TracedStep> trace;
  // NotFound where there is none, DataLoss where it is damaged: a picture is
  // missing then, the report is not.
  absl::StatusOr<PredictedStep> predicted =
      absl::NotFoundError("predicted.json is not there");

  PipelineSummary pipeline() const {
    return summary.has_value() ? summary->pipeline : PipelineSummary{};
  }
};

// A whole file; nothing where there is none. Another code than NotFound where
// it is there but cannot be read.
absl::StatusOr<std::optional<std::string>> FileContents(
    const std::string& path);

// Blocks for the reads. DataLoss naming file and line for a damaged file but
// predicted.json; another code where one is there but cannot be read.
absl::StatusOr<RunFiles> ReadRunFiles(const std::string& run_directory);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_RUN_FILES_H_
