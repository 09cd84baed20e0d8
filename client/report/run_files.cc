#include "client/report/run_files.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/file/file.h"
#include "common/ids/result_names.h"
#include "common/status/status_macros.h"

namespace penstock::client::report {

namespace ids = common::ids;

absl::StatusOr<std::optional<std::string>> FileContents(
    const std::string& path) {
  absl::StatusOr<std::string> contents =
      common::file::ReadFile(path, std::numeric_limits<int64_t>::max());
  if (absl::IsNotFound(contents.status())) return std::nullopt;
  return contents;
}

absl::StatusOr<RunFiles> ReadRunFiles(const std::string& run_directory) {
  const auto path = [&](const char* name) {
    return absl::StrCat(run_directory, "/", name);
  };
  RunFiles files;
  ASSIGN_OR_RETURN(const auto job_yaml,
                   FileContents(path(ids::kResolvedJobFile)));
  files.job_yaml = job_yaml.value_or("");
  ASSIGN_OR_RETURN(const auto summary, FileContents(path(ids::kSummaryFile)));
  if (summary.has_value()) {
    ASSIGN_OR_RETURN(files.summary,
                     ParseRunSummary(*summary, path(ids::kSummaryFile)));
  }
  ASSIGN_OR_RETURN(const auto metrics, FileContents(path(ids::kMetricsFile)));
  if (metrics.has_value()) {
    ASSIGN_OR_RETURN(files.metrics,
                     ParseMetrics(*metrics, path(ids::kMetricsFile)));
  }
  ASSIGN_OR_RETURN(const auto events, FileContents(path(ids::kEventsFile)));
  if (events.has_value()) {
    ASSIGN_OR_RETURN(files.events,
                     ParseEvents(*events, path(ids::kEventsFile)));
  }
  ASSIGN_OR_RETURN(const auto trace, FileContents(path(ids::kTraceFile)));
  if (trace.has_value()) {
    ASSIGN_OR_RETURN(files.trace, ParseTrace(*trace, path(ids::kTraceFile)));
  }
  ASSIGN_OR_RETURN(const auto predicted,
                   FileContents(path(ids::kPredictedFile)));
  if (predicted.has_value()) {
    files.predicted = ParsePredicted(*predicted, path(ids::kPredictedFile));
  }
  return files;
}

}  // namespace penstock::client::report
