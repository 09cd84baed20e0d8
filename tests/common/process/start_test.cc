#include "common/process/start.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process/signals.h"
#include "gtest/gtest.h"

namespace penstock::common::process {
namespace {

constexpr int kReturned = 9;

// The exit code of a process that starts so; kReturned where that ended.
template <typename Start>
int ExitCodeOf(Start start, absl::Duration limit) {
  const pid_t pid = fork();
  if (pid == 0) {
    BlockSignals();
    StartHearingSignals(start, limit);
    _exit(kReturned);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

[[noreturn]] void NeverEnd() {
  while (true) pause();
}

TEST(StartTest, ASignalEndsAStartThatHangs) {
  for (const int number : {SIGTERM, SIGINT}) {
    EXPECT_EQ(ExitCodeOf(
                  [number] {
                    kill(getpid(), SIGHUP);  // Which is ignored.
                    kill(getpid(), number);
                    NeverEnd();
                  },
                  absl::Milliseconds(50)),
              0);
  }
}

TEST(StartTest, ASecondSignalEndsItAtOnce) {
  EXPECT_EQ(ExitCodeOf(
                [] {
                  // The lower number is taken first.
                  kill(getpid(), SIGINT);
                  kill(getpid(), SIGTERM);
                  NeverEnd();
                },
                absl::InfiniteDuration()),
            128 + SIGTERM);
}

TEST(StartTest, AfterAStartThatEndsTheSignalIsThereStill) {
  bool started = false;
  EXPECT_EQ(ExitCodeOf([] {}, absl::ZeroDuration()), kReturned);
  const pid_t pid = fork();
  if (pid == 0) {
    BlockSignals();
    StartHearingSignals(
        [&started] {
          kill(getpid(), SIGTERM);
          started = true;
        },
        absl::Seconds(60));
    bool told = false, woken = false;
    while (!told || !woken) {
      const auto signal = WaitForSignal(absl::ZeroDuration());
      if (!signal.has_value()) _exit(1);
      told |= signal == SIGTERM;
      woken |= signal == SIGCHLD;
    }
    _exit(started ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace penstock::common::process
