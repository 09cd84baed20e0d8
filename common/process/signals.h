// How a program hears signals and its parent's end. For main.cc, and for what
// ends a `penstock run` in order.
#ifndef PENSTOCK_COMMON_PROCESS_SIGNALS_H_
#define PENSTOCK_COMMON_PROCESS_SIGNALS_H_

#include <sys/types.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::common::process {

// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGCHLD in this thread and those
// that it starts, and ignores SIGPIPE and SIGXFSZ: what cannot be written is an
// error of the write. Call before any thread starts; works as PID 1 too.
void BlockSignals();

// For a program that a signal may end at any time, as it does by default: the
// same of SIGCHLD, SIGPIPE and SIGXFSZ, and nothing of the others.
// BlockSignals() may follow.
void BlockChildSignal();

// The next of the signals that BlockSignals() blocks, or nullopt after
// `timeout`.
std::optional<int> WaitForSignal(absl::Duration timeout);

// Whether `signal` tells a program in a terminal to end: SIGINT, SIGTERM, and
// SIGHUP unless this process ignores it, as nohup makes it.
bool TellsToStop(int signal);

// Whether such a signal was blocked and waits for WaitForSignal(). It stays.
bool StopIsPending();

// After BlockSignals(), when nothing is left to be ended in order: from now on
// SIGINT, SIGTERM and SIGHUP, unless that is ignored, end the process at once,
// whatever it waits for. Those that came before have been obeyed, and are
// dropped.
void LetStopSignalsEnd();

// From now on this process gets SIGTERM when `parent` ends.
// FailedPrecondition when it has ended already (our parent is another).
// The kernel follows the *thread* that spawned us: the parent must spawn from
// one that lives as long as it does.
absl::Status DieWithParent(pid_t parent);

// The exit code of a process that its own watchdog ended.
inline constexpr int kWatchdogExit = 70;

// Whatever happens, the process ends in at most `limit`, rounded up to a
// second, with kWatchdogExit: by a handler of SIGALRM, which works as PID 1
// too and needs no thread. For the time after a signal to stop. A second call
// replaces the limit.
void EndWithin(absl::Duration limit);

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_SIGNALS_H_
