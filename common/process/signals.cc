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

}  // namespace

void BlockSignals() {
  const sigset_t set = Handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
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
  signal(SIGALRM, SIG_DFL);
  alarm(static_cast<unsigned>(std::ceil(absl::ToDoubleSeconds(limit))));
}

}  // namespace penstock::common::process
