#include "common/sync/mutex.h"

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <thread>

#include "gtest/gtest.h"

namespace penstock::common::sync {
namespace {

struct Counter {
  Mutex mutex;
  int value ABSL_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, AwaitSeesAChangeMadeUnderTheLock) {
  Counter counter;
  std::thread writer([&counter] {
    for (int i = 0; i < 100; ++i) {
      MutexLock lock(&counter.mutex);
      ++counter.value;
    }
  });
  {
    MutexLock lock(&counter.mutex);
    const auto complete = [&counter] {
      counter.mutex.AssertHeld();
      return counter.value == 100;
    };
    EXPECT_TRUE(counter.mutex.AwaitWithTimeout(absl::Condition(&complete),
                                               absl::Seconds(60)));
  }
  writer.join();
}

TEST(MutexTest, AwaitReturnsFalseAtTheDeadline) {
  Mutex mutex;
  bool never = false;
  MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitWithDeadline(absl::Condition(&never), absl::Now()));
}

// Timed and untimed waiters of one mutex, each woken by the other's change.
TEST(MutexTest, TimedAndUntimedWaitersSeeEachOthersChanges) {
  constexpr int kRounds = 2000;
  Counter counter;
  const auto run = [&counter](int parity, bool timed) {
    MutexLock lock(&counter.mutex);
    const auto turn = [&counter, parity] {
      counter.mutex.AssertHeld();
      return counter.value % 3 == parity;
    };
    for (int i = 0; i < kRounds; ++i) {
      if (timed) {
        ASSERT_TRUE(counter.mutex.AwaitWithTimeout(absl::Condition(&turn),
                                                   absl::Seconds(60)));
      } else {
        counter.mutex.Await(absl::Condition(&turn));
      }
      ++counter.value;
    }
  };
  std::thread untimed(run, 0, false), timed(run, 1, true);
  run(2, true);
  untimed.join();
  timed.join();
  MutexLock lock(&counter.mutex);
  EXPECT_EQ(counter.value, 3 * kRounds);
}

TEST(MutexTest, ATimeoutIsWaitedFor) {
  Mutex mutex;
  bool never = false;
  MutexLock lock(&mutex);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(
      mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(20)));
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(20));
}

// Ends the process (SIGSYS) at a futex call that waits on the wall clock.
void ForbidWaitsOnTheWallClock() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FUTEX_CLOCK_REALTIME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    _exit(1);
  }
}

// What a step of the wall clock would shorten, or stretch without end.
TEST(MutexTest, NoTimedWaitIsOnTheWallClock) {
  const pid_t child = fork();
  if (child == 0) {
    ForbidWaitsOnTheWallClock();
    Mutex mutex;
    Notification never;
    const bool no = false;
    {
      MutexLock lock(&mutex);
      mutex.AwaitWithTimeout(absl::Condition(&no), absl::Milliseconds(5));
      mutex.AwaitWithDeadline(absl::Condition(&no),
                              absl::Now() + absl::Milliseconds(5));
    }
    never.WaitForNotificationWithTimeout(absl::Milliseconds(5));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(MutexTest, AnInfiniteTimeoutHasNoEnd) {
  Counter counter;
  std::thread writer([&counter] {
    MutexLock lock(&counter.mutex);
    counter.value = 1;
  });
  {
    MutexLock lock(&counter.mutex);
    const auto set = [&counter] {
      counter.mutex.AssertHeld();
      return counter.value == 1;
    };
    EXPECT_TRUE(counter.mutex.AwaitWithTimeout(absl::Condition(&set),
                                               absl::InfiniteDuration()));
  }
  writer.join();
}

TEST(NotificationTest, IsSeenByAnotherThread) {
  Notification ready;
  std::thread notifier([&ready] { ready.Notify(); });
  ready.WaitForNotification();
  EXPECT_TRUE(ready.HasBeenNotified());
  notifier.join();
}

}  // namespace
}  // namespace penstock::common::sync
