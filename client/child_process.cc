#include "client/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace penstock::client {

std::string Describe(const ChildExit& exit) {
  if (exit.exit_code > 128) {
    const int signal = exit.exit_code - 128;
    return absl::StrCat("killed by signal ", signal, " (", strsignal(signal),
                        ")");
  }
  return absl::StrCat("exit code ", exit.exit_code);
}

absl::StatusOr<pid_t> Spawn(const ChildCommand& command) {
  std::vector<char*> arguments;
  arguments.push_back(const_cast<char*>(command.program.c_str()));
  for (const std::string& argument : command.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&files, command.log_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, command.log_fd, STDERR_FILENO);
  if (command.passed_fd >= 0) {
    posix_spawn_file_actions_adddup2(&files, command.passed_fd,
                                     kPassedDescriptor);
  }

  // A group of its own: Ctrl-C reaches only `run`, which stops children in
  // order. No signal is blocked or ignored that was not at the start.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command.program.c_str(), &files,
                                &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot start ", command.program,
                                               ": ", std::strerror(error)));
  }
  return pid;
}

std::optional<ChildExit> ReapAny() {
  int status = 0;
  const pid_t pid = waitpid(-1, &status, WNOHANG);
  if (pid <= 0) return std::nullopt;
  return ChildExit{.pid = pid,
                   .exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                    : WEXITSTATUS(status)};
}

bool AwaitChildEnd(absl::Duration limit) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec longest =
      absl::ToTimespec(std::max(limit, absl::ZeroDuration()));
  int taken = -1;
  do {
    taken = sigtimedwait(&child, nullptr, &longest);
  } while (taken < 0 && errno == EINTR);
  return taken == SIGCHLD;
}

}  // namespace penstock::client
