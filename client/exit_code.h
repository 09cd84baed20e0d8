// The exit codes that scripts rely on (docs/operations.md has the table).
#ifndef PENSTOCK_CLIENT_EXIT_CODE_H_
#define PENSTOCK_CLIENT_EXIT_CODE_H_

#include "absl/status/status.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client {

enum ExitCode : int {
  kDone = 0,
  kJobFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kUnavailable = 4,
  kTimeout = 5,
  kDenied = 6,
  kCancelled = 7,
  kVersionMismatch = 8,
  kConflict = 9,
  kInternal = 70,
  kInterrupted = 130,
  kStopped = 143,
};

// Of a call that failed; FailedPrecondition is kVersionMismatch with reason
// PROTOCOL_VERSION_UNSUPPORTED and kConflict otherwise. kDone for OK.
ExitCode ExitCodeOf(const absl::Status& status);

// Of a job that has ended. REQUIRES: a terminal state.
ExitCode ExitCodeOf(const v1::Job& job);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_EXIT_CODE_H_
