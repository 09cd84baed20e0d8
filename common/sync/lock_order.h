// abseil's watch over the order in which locks are taken.
#ifndef PENSTOCK_COMMON_SYNC_LOCK_ORDER_H_
#define PENSTOCK_COMMON_SYNC_LOCK_ORDER_H_

#include "absl/synchronization/mutex.h"

namespace penstock::common::sync {

// From now on locks do not check the order in which they are taken. Debian's
// abseil does unless told not to, at a tenth of the time of a small message
// between busy cores. Call before the first lock is taken.
inline void SkipLockOrderChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_LOCK_ORDER_H_
