// A clock that stands still until the test moves it.
#ifndef PENSTOCK_TESTS_FAKES_FAKE_CLOCK_H_
#define PENSTOCK_TESTS_FAKES_FAKE_CLOCK_H_

#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"

namespace penstock::tests::fakes {

// Starts at 2026-01-01 00:00:00 UTC. Thread-safe.
class FakeClock final : public common::time::Clock {
 public:
  absl::Time Now() const override {
    common::sync::MutexLock lock(&mu_);
    return now_;
  }
  common::time::MonotonicTime Monotonic() const override {
    common::sync::MutexLock lock(&mu_);
    return monotonic_;
  }

  // Time passes: both readings move. REQUIRES: d is not negative.
  void Advance(absl::Duration d) {
    CHECK(d >= absl::ZeroDuration()) << "time does not go back";
    common::sync::MutexLock lock(&mu_);
    now_ += d;
    monotonic_ += d;
  }

  // Somebody sets the wall clock; the monotonic reading does not move.
  void SetWallTime(absl::Time now) {
    common::sync::MutexLock lock(&mu_);
    now_ = now;
  }

 private:
  mutable common::sync::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_) = absl::FromUnixSeconds(1767225600);
  // Not zero, so that code which takes zero for "unset" is found out.
  common::time::MonotonicTime monotonic_ ABSL_GUARDED_BY(mu_) =
      common::time::MonotonicTime::FromZero(absl::Hours(1));
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_FAKE_CLOCK_H_
