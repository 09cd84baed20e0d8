// One child process of `penstock run`: spawned, asked to stop, reaped.
#ifndef PENSTOCK_CLIENT_CHILD_PROCESS_H_
#define PENSTOCK_CLIENT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::client {

// How a child ended, as the shell says it: 137 for SIGKILL.
struct ChildExit {
  pid_t pid = 0;
  int exit_code = 0;
};

// "killed by signal 9 (Killed)" or "exit code 2".
std::string Describe(const ChildExit& exit);

// The first descriptor after the standard ones.
inline constexpr int kPassedDescriptor = 3;

struct ChildCommand {
  std::string program;  // A path.
  std::vector<std::string> arguments;
  int log_fd = -1;  // Its stdout and stderr; borrowed, opened for appending.
  // Becomes the child's kPassedDescriptor; borrowed. -1: nothing does.
  int passed_fd = -1;
};

// Starts the program with the signal mask of a fresh process. Call from a
// thread that lives as long as this process: children that asked for it get a
// signal when that thread ends (prctl PR_SET_PDEATHSIG).
absl::StatusOr<pid_t> Spawn(const ChildCommand& command);

// A child that has ended and was not reaped yet, without blocking.
std::optional<ChildExit> ReapAny();

// Waits until a child ends, or has ended since the last wait; false when
// `limit` passed without. Takes no other signal: a Ctrl-C stays for whoever
// waits for it. Reap first, and look whether there is anything left to wait
// for: an end is told once.
// REQUIRES: SIGCHLD is blocked (common/process/signals.h).
[[nodiscard]] bool AwaitChildEnd(absl::Duration limit);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_CHILD_PROCESS_H_
