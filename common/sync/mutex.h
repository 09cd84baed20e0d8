// The project's locks: absl's in normal builds; in the ThreadSanitizer build
// the same interface over std::mutex, because Debian's abseil is not
// instrumented and TSan would report false races.
//
// sync::Mutex, MutexLock and Notification mean what absl's do
// (absl/synchronization), with clang's thread-safety annotations.
#ifndef PENSTOCK_COMMON_SYNC_MUTEX_H_
#define PENSTOCK_COMMON_SYNC_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#if PENSTOCK_TSAN
#include <condition_variable>
#include <mutex>
#endif

namespace penstock::common::sync {

#if !PENSTOCK_TSAN

using Mutex = absl::Mutex;
using MutexLock = absl::MutexLock;
using Notification = absl::Notification;

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
    AwaitWithDeadline(condition, absl::InfiniteFuture());
  }
  bool AwaitWithTimeout(const absl::Condition& condition,
                        absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return AwaitWithDeadline(condition, absl::Now() + timeout);
  }
  bool AwaitWithDeadline(const absl::Condition& condition, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (condition.Eval()) return true;
    std::unique_lock<std::mutex> lock(mutex_, std::adopt_lock);
    // The wait gives the mutex up: other waiters' conditions may hold.
    if (waiters_ > 0) changed_.notify_all();
    ++waiters_;
    bool holds = condition.Eval();
    while (!holds) {
      if (deadline == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else if (absl::Now() >= deadline) {
        break;
      } else {
        changed_.wait_until(lock, absl::ToChronoTime(deadline));
      }
      holds = condition.Eval();
    }
    --waiters_;
    lock.release();
    return holds;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;  // Guarded by mutex_.
};

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

#endif  // PENSTOCK_TSAN

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_MUTEX_H_
