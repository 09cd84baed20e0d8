#include "common/process/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gtest/gtest.h"

namespace penstock::common::process {
namespace {

constexpr int kNotPermitted = 77;

// Runs `child` in a child process; what waitpid says of it.
template <typename Child>
int StatusOf(Child child) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid) << std::strerror(errno);
  return status;
}

[[noreturn]] void NeverEnd() {
  while (true) pause();
}

TEST(BlockSignalsTest, AFileThatMayNotGrowIsAnErrorOfTheWrite) {
  const int status = StatusOf([] {
    BlockSignals();
    const rlimit limit = {.rlim_cur = 4, .rlim_max = 4};
    const int fd = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    if (write(fd, "12345678", 8) != 4) _exit(2);
    if (write(fd, "5678", 4) != -1 || errno != EFBIG) _exit(3);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BlockSignalsTest, ASignalToStopWaitsUntilItIsTaken) {
  const int status = StatusOf([] {
    BlockChildSignal();
    BlockSignals();
    if (StopIsPending()) _exit(1);
    raise(SIGUSR1);
    raise(SIGCHLD);
    if (StopIsPending()) _exit(2);
    raise(SIGTERM);
    if (!StopIsPending() || !StopIsPending()) _exit(3);
    while (WaitForSignal(absl::ZeroDuration()) != SIGTERM) {
    }
    if (StopIsPending()) _exit(4);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(BlockSignalsTest, AHangupThatIsIgnoredTellsNobodyToStop) {
  const int status = StatusOf([] {
    BlockSignals();
    signal(SIGHUP, SIG_DFL);
    if (!TellsToStop(SIGHUP)) _exit(1);
    signal(SIGHUP, SIG_IGN);  // The kernel keeps a blocked one even so.
    raise(SIGHUP);
    if (TellsToStop(SIGHUP) || StopIsPending()) _exit(2);
    if (!TellsToStop(SIGINT) || !TellsToStop(SIGTERM)) _exit(3);
    if (TellsToStop(SIGUSR1) || TellsToStop(SIGCHLD)) _exit(4);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LetStopSignalsEndTest, WhatCameBeforeIsDroppedAndTheNextOneEnds) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = StatusOf([number] {
      signal(number, number == SIGHUP ? SIG_DFL : SIG_IGN);
      BlockSignals();
      raise(number);
      LetStopSignalsEnd();
      raise(SIGCHLD);  // Still blocked, as the others.
      raise(SIGUSR1);
      if (StopIsPending()) _exit(1);
      raise(number);
    });
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), number);
  }
}

TEST(LetStopSignalsEndTest, AHangupThatIsIgnoredStaysIgnored) {
  const int status = StatusOf([] {
    signal(SIGHUP, SIG_IGN);
    BlockSignals();
    LetStopSignalsEnd();
    raise(SIGHUP);
    _exit(7);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(LetStopSignalsEndTest, EndsPidOneOfAContainerToo) {
  const int status = StatusOf([] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kNotPermitted);
    const int first = StatusOf([] {
      if (getpid() != 1) _exit(1);
      BlockSignals();
      LetStopSignalsEnd();
      raise(SIGTERM);
    });
    _exit(WIFEXITED(first) ? WEXITSTATUS(first) : 1);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "no new PID namespace is permitted here";
  }
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(BlockChildSignalTest, LeavesSignalsToStopTheirDefaultAction) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = StatusOf([number] {
      signal(number, SIG_DFL);
      BlockChildSignal();
      raise(SIGPIPE);
      raise(number);
    });
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), number);
  }
}

TEST(BlockChildSignalTest, AChildsEndWaitsToBeTaken) {
  const int status = StatusOf([] {
    BlockChildSignal();
    StatusOf([] {});
    if (WaitForSignal(absl::Seconds(60)) != SIGCHLD) _exit(1);
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(EndWithinTest, EndsAProcessThatHangsWithTheWatchdogsCode) {
  const int status = StatusOf([] {
    BlockSignals();
    EndWithin(absl::Milliseconds(100));  // Rounded up to a second.
    NeverEnd();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), kWatchdogExit);
}

TEST(EndWithinTest, AlsoWhereTheSignalWasBlockedAtTheStart) {
  const int status = StatusOf([] {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    EndWithin(absl::Milliseconds(100));
    NeverEnd();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), kWatchdogExit);
}

TEST(EndWithinTest, AlsoWhereNobodyTakesWhatItSays) {
  const int status = StatusOf([] {
    BlockSignals();
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) != 0) _exit(1);
    while (write(ends[1], "x", 1) == 1) {
    }
    if (fcntl(ends[1], F_SETFL, 0) != 0 || dup2(ends[1], 2) != 2) _exit(2);
    EndWithin(absl::Milliseconds(100));
    NeverEnd();
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), kWatchdogExit);
}

// The kernel does not take the default action of a signal for PID 1 of a PID
// namespace, as of a container.
TEST(EndWithinTest, EndsPidOneOfAContainerToo) {
  const int status = StatusOf([] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(kNotPermitted);
    const int first = StatusOf([] {
      if (getpid() != 1) _exit(1);
      BlockSignals();
      EndWithin(absl::Milliseconds(100));
      poll(nullptr, 0, 3000);  // Without a handler all of it, and 0.
    });
    _exit(WIFEXITED(first) ? WEXITSTATUS(first) : 128 + WTERMSIG(first));
  });
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "no new PID namespace is permitted here";
  }
  EXPECT_EQ(WEXITSTATUS(status), kWatchdogExit);
}

TEST(DieWithParentTest, RefusesAStrangersPid) {
  const int status =
      StatusOf([] { _exit(DieWithParent(getpid()).ok() ? 0 : 1); });
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace penstock::common::process
