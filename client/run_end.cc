#include "client/run_end.h"

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "client/json_output.h"

namespace penstock::client {
namespace {

const char* NameOf(int stop_signal) {
  switch (stop_signal) {
    case SIGINT:
      return "Ctrl-C";
    case SIGHUP:
      return "SIGHUP (the terminal closed)";
    default:
      return "SIGTERM";
  }
}

}  // namespace

bool IsOver(const v1::Job& job) {
  return job.state() == v1::Job::STATE_SUCCEEDED ||
         job.state() == v1::Job::STATE_FAILED ||
         job.state() == v1::Job::STATE_CANCELLED;
}

ExitCode ExitCodeOf(const RunEnd& end) {
  if (end.stop_signal == SIGINT) return kInterrupted;
  if (end.stop_signal != 0) return kStopped;
  if (!end.coordinator.ok()) return kJobFailed;
  return ExitCodeOf(end.job);
}

std::string DescribeEarlyStop(int stop_signal) {
  return absl::StrCat("stopped by ", NameOf(stop_signal),
                      " before the job had begun");
}

std::string Describe(const RunEnd& end, const RunDirectory& directory) {
  if (end.stop_signal != 0) {
    return absl::StrCat("stopped by ", NameOf(end.stop_signal),
                        "; results so far are in ", directory.path());
  }
  if (!end.coordinator.ok()) {
    return absl::StrCat(Printable(end.coordinator.message()), "; logs are in ",
                        directory.logs());
  }
  if (end.job.state() != v1::Job::STATE_FAILED) return "";
  return absl::StrCat("job ", end.job.id(),
                      " failed: ", EnumWord(end.job.reason()), ": ",
                      Printable(end.job.cause().message()));
}

bool IsRefused(const RunEnd& end) {
  const ExitCode code = ExitCodeOf(end);
  return end.job.state() == v1::Job::STATE_FAILED &&
         !end.job.has_start_time() &&
         (code == kUsage || code == kVersionMismatch);
}

}  // namespace penstock::client
