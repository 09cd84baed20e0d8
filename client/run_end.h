// How a `penstock run` ended: its exit code, and the words for it.
#ifndef PENSTOCK_CLIENT_RUN_END_H_
#define PENSTOCK_CLIENT_RUN_END_H_

#include <string>

#include "absl/status/status.h"
#include "client/exit_code.h"
#include "client/run_directory.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client {

// What goes before is what counts.
struct RunEnd {
  int stop_signal = 0;       // SIGINT, SIGTERM or SIGHUP ended it; 0: none.
  absl::Status coordinator;  // Not OK: how that ended before the job did.
  v1::Job job;               // As last seen; terminal, but for those two.
};

// Whether the job has ended.
bool IsOver(const v1::Job& job);

ExitCode ExitCodeOf(const RunEnd& end);

// Of a run that a signal stopped before its job had begun: nothing of it stays.
std::string DescribeEarlyStop(int stop_signal);

// One line without "penstock: "; "" where there is nothing to say: success, or
// a cancel that the progress told of.
std::string Describe(const RunEnd& end, const RunDirectory& directory);

// The job was refused before anything of it ran. (Of a failure, as a stage that
// died while it was assembled, the logs are wanted.)
bool IsRefused(const RunEnd& end);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_RUN_END_H_
