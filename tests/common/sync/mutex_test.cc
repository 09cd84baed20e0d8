#include "common/sync/mutex.h"

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

TEST(NotificationTest, IsSeenByAnotherThread) {
  Notification ready;
  std::thread notifier([&ready] { ready.Notify(); });
  ready.WaitForNotification();
  EXPECT_TRUE(ready.HasBeenNotified());
  notifier.join();
}

}  // namespace
}  // namespace penstock::common::sync
