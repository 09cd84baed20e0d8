// How a daemon starts what may wait for others. For main.cc only.
#ifndef PENSTOCK_COMMON_PROCESS_START_H_
#define PENSTOCK_COMMON_PROCESS_START_H_

#include <functional>

#include "absl/time/time.h"

namespace penstock::common::process {

// Runs `start`, which may wait for a name server, on a thread of its own, and
// returns when it has. SIGTERM and SIGINT are heard meanwhile: `start` has
// `limit` then, after which the process ends with exit code 0, because nothing
// runs yet that had to be ended; a second one ends it at once. When `start` has
// returned, a signal that came meanwhile is there for WaitForSignal(), and so
// is a SIGCHLD: look around first.
// REQUIRES: BlockSignals().
void StartHearingSignals(const std::function<void()>& start,
                         absl::Duration limit);

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_START_H_
