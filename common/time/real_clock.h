// The machine's clock. What else may ask the machine for the time, and why, is
// listed in tests/architecture/source_check.py.
#ifndef PENSTOCK_COMMON_TIME_REAL_CLOCK_H_
#define PENSTOCK_COMMON_TIME_REAL_CLOCK_H_

#include "common/time/clock.h"

namespace penstock::common::time {

// Thread-safe.
class RealClock final : public Clock {
 public:
  absl::Time Now() const override;
  // CLOCK_MONOTONIC: stands still while the machine sleeps.
  MonotonicTime Monotonic() const override;
};

}  // namespace penstock::common::time

#endif  // PENSTOCK_COMMON_TIME_REAL_CLOCK_H_
