// What a fake was told, in order, for a test that waits for it.
#ifndef PENSTOCK_TESTS_SERVER_SERVICE_RECORDED_H_
#define PENSTOCK_TESTS_SERVER_SERVICE_RECORDED_H_

#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace penstock::testing {

// Thread-safe.
template <typename T>
class Recorded {
 public:
  void Put(T item) {
    common::sync::MutexLock lock(&mutex_);
    items_.push_back(std::move(item));
  }

  // Blocks for the next item; nullopt when none comes for 60 s.
  std::optional<T> Take() {
    common::sync::MutexLock lock(&mutex_);
    const auto any = [this] {
      mutex_.AssertHeld();
      return !items_.empty();
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&any), absl::Seconds(60))) {
      return std::nullopt;
    }
    std::optional<T> item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  bool empty() const {
    common::sync::MutexLock lock(&mutex_);
    return items_.empty();
  }

 private:
  mutable common::sync::Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_SERVICE_RECORDED_H_
