#include "common/process/signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock::common::process {
namespace {

sigset_t Handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
    sigaddset(&set, signal);
  }
  return set;
}

// A handler, because the default action of a signal is not taken for PID 1 of
// a container, and is an end by signal where an exit code is promised.
void EndNow(int) {
  constexpr char kText[] = "the process did not end in time; ending it\n";
  const ssize_t ignored = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  static_cast<void>(ignored);
  _exit(kWatchdogExit);
}

}  // namespace

void BlockSignals() {
  const sigset_t set = Handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

std::optional<int> WaitForSignal(absl::Duration timeout) {
  const sigset_t set = Handled();
  const timespec limit = absl::ToTimespec(timeout);
  int taken = -1;
  do {
    taken = timeout == absl::InfiniteDuration()
                ? sigwaitinfo(&set, nullptr)
                : sigtimedwait(&set, nullptr, &limit);
  } while (taken < 0 && errno == EINTR);
  return taken < 0 ? std::nullopt : std::optional<int>(taken);
}

absl::Status DieWithParent(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
    return absl::InternalError(
        absl::StrCat("prctl(PR_SET_PDEATHSIG): ", std::strerror(errno)));
  }
  if (getppid() != parent) {
    return absl::FailedPreconditionError(
        absl::StrCat("the parent, process ", parent, ", has ended"));
  }
  return absl::OkStatus();
}

void EndWithin(absl::Duration limit) {
  struct sigaction action {};
  action.sa_handler = EndNow;
  sigaction(SIGALRM, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  alarm(static_cast<unsigned>(std::ceil(absl::ToDoubleSeconds(limit))));
}

}  // namespace penstock::common::process
