#include "client/commands/run_results.h"

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/report/report.h"
#include "client/report/run_files.h"
#include "client/report/run_summary.h"
#include "client/summary_table.h"
#include "common/ids/result_names.h"

namespace penstock::client::commands {

namespace fs = std::filesystem;

namespace {

// In the log folder.
constexpr char kCoordinatorLog[] = "coordinator.log";

}  // namespace

void RunResults::Complete(const LocalCluster& cluster) {
  log_ = cluster.SaveCoordinatorLog(
      (fs::path(directory_.logs()) / kCoordinatorLog).string());
  report_ = report::WriteReport(directory_.path());
}

void RunResults::Print(const v1::Job& job) {
  Complain(log_);
  Complain(report_);
  const std::string text = SummaryText(job);
  if (text.empty()) {
    // The job came to none.
  } else if (format_ == Format::kJson) {
    std::fputs(text.c_str(), stdout);
  } else if (const auto summary = report::ParseRunSummary(
                 text, PathOf(common::ids::kSummaryFile));
             summary.ok()) {
    std::printf("%s\n", SummaryTable(*summary).c_str());
  } else {
    Complain(summary.status());
  }
  if (format_ == Format::kJson || !report_.ok()) return;
  std::printf("report: %s\n", PathOf(common::ids::kReportFile).c_str());
}

std::string RunResults::PathOf(absl::string_view name) const {
  return (fs::path(directory_.path()) / std::string(name)).string();
}

std::string RunResults::SummaryText(const v1::Job& job) {
  const std::string path = PathOf(common::ids::kSummaryFile);
  const auto text = report::FileContents(path);
  if (text.ok() && text->has_value()) return **text;
  if (!text.ok()) {
    Complain(text.status());
  } else if (!job.summary_json().empty()) {
    Complain(absl::NotFoundError(
        absl::StrCat(path, " is not there; ", common::ids::kLogFolder, "/",
                     kCoordinatorLog, " may say why")));
  }
  return job.summary_json();
}

void RunResults::Complain(const absl::Status& status) {
  if (status.ok() || !complaints_.emplace(status.message()).second) return;
  Fail(status);
}

}  // namespace penstock::client::commands
