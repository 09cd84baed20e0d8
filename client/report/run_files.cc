#include "client/report/run_files.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::client::report {

absl::StatusOr<std::optional<std::string>> FileContents(
    const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return std::nullopt;
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path));
  }
  std::ostringstream contents;
  if (file.peek() != std::ifstream::traits_type::eof()) {
    contents << file.rdbuf();
  }
  if (file.bad() || contents.fail()) {
    return absl::ErrnoToStatus(errno != 0 ? errno : EIO,
                               absl::StrCat("cannot read ", path));
  }
  return std::move(contents).str();
}

absl::StatusOr<RunFiles> ReadRunFiles(const std::string& run_directory) {
  const auto path = [&](const char* name) {
    return absl::StrCat(run_directory, "/", name);
  };
  RunFiles files;
  ASSIGN_OR_RETURN(const auto job_yaml, FileContents(path("job.yaml")));
  files.job_yaml = job_yaml.value_or("");
  ASSIGN_OR_RETURN(const auto summary, FileContents(path("summary.json")));
  if (summary.has_value()) {
    ASSIGN_OR_RETURN(files.summary,
                     ParseRunSummary(*summary, path("summary.json")));
  }
  ASSIGN_OR_RETURN(const auto metrics, FileContents(path("metrics.jsonl")));
  if (metrics.has_value()) {
    ASSIGN_OR_RETURN(files.metrics,
                     ParseMetrics(*metrics, path("metrics.jsonl")));
  }
  ASSIGN_OR_RETURN(const auto events, FileContents(path("events.jsonl")));
  if (events.has_value()) {
    ASSIGN_OR_RETURN(files.events, ParseEvents(*events, path("events.jsonl")));
  }
  ASSIGN_OR_RETURN(const auto trace, FileContents(path("trace.json")));
  if (trace.has_value()) {
    ASSIGN_OR_RETURN(files.trace, ParseTrace(*trace, path("trace.json")));
  }
  return files;
}

}  // namespace penstock::client::report
