// Time as a dependency: code that needs it takes a Clock&, main passes
// RealClock (real_clock.h), tests pass FakeClock (tests/fakes/fake_clock.h).
//
// Now() is for what people read (timestamps); Monotonic() for deadlines,
// leases and durations, because it never jumps. Deadlines of waits for devices
// and transports are absl::Time and become time-outs on the steady clock when
// the wait begins (common/sync): make them just before, of Now().
#ifndef PENSTOCK_COMMON_TIME_CLOCK_H_
#define PENSTOCK_COMMON_TIME_CLOCK_H_

#include <compare>

#include "absl/time/time.h"

namespace penstock::common::time {

// A point on a clock that only moves forward. Its zero means nothing, and
// points of different processes or clocks must not be compared. Immutable.
class MonotonicTime {
 public:
  constexpr MonotonicTime() = default;
  static constexpr MonotonicTime FromZero(absl::Duration since_zero) {
    return MonotonicTime(since_zero);
  }
  // Later than every other point: "no deadline".
  static MonotonicTime Infinite() {
    return MonotonicTime(absl::InfiniteDuration());
  }

  constexpr absl::Duration since_zero() const { return since_zero_; }

  MonotonicTime& operator+=(absl::Duration d) {
    since_zero_ += d;
    return *this;
  }
  friend MonotonicTime operator+(MonotonicTime t, absl::Duration d) {
    return t += d;
  }
  friend MonotonicTime operator-(MonotonicTime t, absl::Duration d) {
    return t += -d;
  }
  friend absl::Duration operator-(MonotonicTime a, MonotonicTime b) {
    return a.since_zero_ - b.since_zero_;
  }
  friend bool operator==(MonotonicTime a, MonotonicTime b) {
    return a.since_zero_ == b.since_zero_;
  }
  friend std::strong_ordering operator<=>(MonotonicTime a, MonotonicTime b) {
    if (a.since_zero_ < b.since_zero_) return std::strong_ordering::less;
    if (b.since_zero_ < a.since_zero_) return std::strong_ordering::greater;
    return std::strong_ordering::equal;
  }

 private:
  explicit constexpr MonotonicTime(absl::Duration since_zero)
      : since_zero_(since_zero) {}

  absl::Duration since_zero_;
};

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall time; may jump in either direction.
  virtual absl::Time Now() const = 0;

  // Never goes back within one process.
  virtual MonotonicTime Monotonic() const = 0;
};

}  // namespace penstock::common::time

#endif  // PENSTOCK_COMMON_TIME_CLOCK_H_
