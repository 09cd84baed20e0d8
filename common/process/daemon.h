// How a daemon's main() begins, and how it refuses to. For main.cc only.
#ifndef PENSTOCK_COMMON_PROCESS_DAEMON_H_
#define PENSTOCK_COMMON_PROCESS_DAEMON_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"

namespace penstock::common::process {

struct DaemonOptions {
  std::string log_name;    // In each log line: "coordinator", "stage-2".
  std::string log_format;  // "text" or "json".
  log::Severity log_level = log::Severity::kInfo;
  pid_t parent = 0;  // To end with; 0: none.
};

// BlockSignals(), SkipLockOrderChecks(), the log, DieWithParent(). Call before any thread starts.
// Errors as DieWithParent.
absl::Status BeginDaemon(const DaemonOptions& options);

// Flags or the configuration are wrong; nothing was started.
inline constexpr int kBadConfiguration = 2;

// Says on stderr why `program` does not start; returns kBadConfiguration.
int Refuse(absl::string_view program, const absl::Status& why);

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_DAEMON_H_
