#include "common/time/real_clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace penstock::common::time {

absl::Time RealClock::Now() const { return absl::Now(); }

MonotonicTime RealClock::Monotonic() const {
  return MonotonicTime::FromZero(
      absl::FromChrono(std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())));
}

}  // namespace penstock::common::time
