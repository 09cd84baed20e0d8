#include "common/process/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace penstock::common::process {
namespace {

// What ends `penstock run` in order.
constexpr std::initializer_list<int> kStops = {SIGINT, SIGTERM, SIGHUP};

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

sigset_t Handled() {
  return SetOf({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD});
}

// A handler, because the default action of a signal is not taken for PID 1 of
// a container, and is an end by signal where an exit code is promised.
void EndNow(int) {
  constexpr char kText[] = "the process did not end in time; ending it\n";
  // What it ends may be waiting for whoever takes this.
  pollfd out{.fd = STDERR_FILENO, .events = POLLOUT};
  if (poll(&out, 1, 0) == 1) {
    const ssize_t ignored = write(STDERR_FILENO, kText, sizeof(kText) - 1);
    static_cast<void>(ignored);
  }
  _exit(kWatchdogExit);
}

// As a shell says it of SIGINT and SIGTERM; a hangup counts as the latter.
void ExitNow(int number) { _exit(128 + (number == SIGINT ? SIGINT : SIGTERM)); }

}  // namespace

void BlockSignals() {
  BlockChildSignal();
  const sigset_t set = Handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void BlockChildSignal() {
  const sigset_t set = SetOf({SIGCHLD});
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

bool TellsToStop(int signal) {
  if (signal != SIGHUP) return signal == SIGINT || signal == SIGTERM;
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) != 0 ||
         action.sa_handler != SIG_IGN;
}

bool StopIsPending() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  for (const int signal : kStops) {
    if (sigismember(&pending, signal) == 1 && TellsToStop(signal)) return true;
  }
  return false;
}

void LetStopSignalsEnd() {
  const sigset_t stops = SetOf(kStops);
  const timespec now{};
  while (sigtimedwait(&stops, nullptr, &now) > 0 || errno == EINTR) {
  }
  // The default action also ends what waits for a disk (for one of the network
  // only that does), but is not taken for PID 1.
  const auto action = getpid() == 1 ? ExitNow : SIG_DFL;
  for (const int number : kStops) {
    if (TellsToStop(number)) signal(number, action);
  }
  pthread_sigmask(SIG_UNBLOCK, &stops, nullptr);
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
