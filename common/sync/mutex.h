// The project's locks. sync::Mutex, MutexLock and Notification mean what absl's
// do (absl/synchronization), with clang's thread-safety annotations, but for
// time-outs: these run on the steady clock.
//
// absl's end at a point of the wall clock, also those that are given as a
// duration. When that clock is set back by an hour (the first answer of a time
// server), a thread that ticks every 100 ms would tick an hour later: no
// heartbeats, no deadlines. So untimed waits are absl's and timed ones ours. In
// the ThreadSanitizer build all is std::mutex, because Debian's abseil is not
// instrumented and TSan would report false races.
#ifndef PENSTOCK_COMMON_SYNC_MUTEX_H_
#define PENSTOCK_COMMON_SYNC_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock::common::sync {

// How long a wait until `deadline` is from now on; none where it has passed.
inline absl::Duration TimeoutTo(absl::Time deadline) {
  return deadline == absl::InfiniteFuture() ? absl::InfiniteDuration()
                                            : deadline - absl::Now();
}

// Where a wait of `timeout` ends; not an infinite one.
inline std::chrono::steady_clock::time_point SteadyDeadline(
    absl::Duration timeout) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24) * 365));
}

#if !PENSTOCK_TSAN

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.Lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    if (timed_waiters_ != nullptr) WakeTimedWaiters();
    mutex_.Unlock();
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

  void Await(const absl::Condition& condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    // The wait gives the mutex up: timed waiters' conditions may hold.
    if (timed_waiters_ != nullptr) WakeTimedWaiters();
    mutex_.Await(condition);
  }
  // Whether the condition holds; false: it did not for `timeout`.
  bool AwaitWithTimeout(const absl::Condition& condition,
                        absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (timeout == absl::InfiniteDuration()) {
      Await(condition);
      return true;
    }
    if (condition.Eval()) return true;
    if (timed_waiters_ != nullptr) WakeTimedWaiters();
    const auto deadline = SteadyDeadline(timeout);
    TimedWaiter self{.condition = condition};
    Link(self);
    bool in_time = true, holds = false;
    while (in_time && !holds) {
      in_time = AwaitWake(self, deadline);
      holds = condition.Eval();
    }
    Unlink(self);
    return holds;
  }
  // The deadline is looked at once: from then on it is a time-out.
  bool AwaitWithDeadline(const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return AwaitWithTimeout(condition, TimeoutTo(deadline));
  }

 private:
  // On the stack of the thread that waits, which leaves the list, and its life,
  // only with mutex_ held.
  struct TimedWaiter {
    const absl::Condition& condition;
    TimedWaiter* next = nullptr;
    std::mutex mutex;  // Taken with mutex_ held, never before it.
    std::condition_variable woken_up;
    bool woken = false;  // Guarded by mutex.
  };

  void Link(TimedWaiter& waiter) {
    waiter.next = timed_waiters_;
    timed_waiters_ = &waiter;
  }
  void Unlink(TimedWaiter& waiter) {
    TimedWaiter** at = &timed_waiters_;
    while (*at != &waiter) at = &(*at)->next;
    *at = waiter.next;
  }

  // Gives mutex_ up until another thread has seen the condition hold; false: at
  // the deadline.
  bool AwaitWake(TimedWaiter& self,
                 std::chrono::steady_clock::time_point deadline)
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(self.mutex);
    self.woken = false;
    mutex_.Unlock();
    const bool woken = self.woken_up.wait_until(lock, deadline,
                                                [&self] { return self.woken; });
    lock.unlock();
    mutex_.Lock();
    return woken;
  }
  // REQUIRES: mutex_ is held, and is about to be given up. As absl does, wakes
  // nobody in vain.
  void WakeTimedWaiters() {
    for (TimedWaiter* waiter = timed_waiters_; waiter != nullptr;
         waiter = waiter->next) {
      if (!waiter->condition.Eval()) continue;
      std::lock_guard<std::mutex> lock(waiter->mutex);
      waiter->woken = true;
      waiter->woken_up.notify_one();
    }
  }

  absl::Mutex mutex_;
  TimedWaiter* timed_waiters_ = nullptr;  // Guarded by mutex_.
};

#else

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    // A condition of an Await may hold now.
    if (waiters_ > 0) changed_.notify_all();
    mutex_.unlock();
  }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

  void Await(const absl::Condition& condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    AwaitWithTimeout(condition, absl::InfiniteDuration());
  }
  bool AwaitWithTimeout(const absl::Condition& condition,
                        absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (condition.Eval()) return true;
    const bool infinite = timeout == absl::InfiniteDuration();
    const auto deadline = SteadyDeadline(timeout);
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    // The wait gives the mutex up: other waiters' conditions may hold.
    if (waiters_ > 0) changed_.notify_all();
    ++waiters_;
    bool in_time = true, holds = condition.Eval();
    while (in_time && !holds) {
      if (infinite) {
        changed_.wait(lock);
      } else {
        in_time =
            changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
      }
      holds = condition.Eval();
    }
    --waiters_;
    lock.release();
    return holds;
  }
  bool AwaitWithDeadline(const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return AwaitWithTimeout(condition, TimeoutTo(deadline));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;  // Guarded by mutex_.
};

#endif  // PENSTOCK_TSAN

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class Notification {
 public:
  Notification() = default;
  // As absl's: may be destroyed as soon as a waiter has returned.
  ~Notification() { MutexLock lock(&mutex_); }

  void Notify() {
    MutexLock lock(&mutex_);
    notified_ = true;
  }
  bool HasBeenNotified() const {
    MutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() const {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&notified_));
  }
  bool WaitForNotificationWithTimeout(absl::Duration timeout) const {
    MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&notified_), timeout);
  }

 private:
  mutable Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_MUTEX_H_
