// An event that host code completes: what a CPU transport gives for a message
// that has arrived or was taken.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_EVENT_H_
#define PENSTOCK_SERVER_DEVICE_HOST_EVENT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/device.h"

namespace penstock::server::device {

// Thread-safe. A transport may derive from it to work for the event while
// somebody waits. Starts done; Reset() makes it pending, Signal() done again.
class HostEvent : public Event {
 public:
  HostEvent() = default;
  // Notes the time of each Signal(). Borrows the clock.
  explicit HostEvent(const common::time::Clock& clock) : clock_(&clock) {}

  // REQUIRES: done, and nobody waits on it.
  void Reset();
  // Completes the event, well or with a failure. A second call before the next
  // Reset() is ignored, so that an abort may race with a completion. `at`: when
  // that was, for an event that notes times; now, unless somebody knows better.
  void Signal(const absl::Status& status,
              std::optional<common::time::MonotonicTime> at = std::nullopt);

  bool Done() const override;
  absl::Status Await(absl::Time deadline) const override;

  std::optional<common::time::MonotonicTime> done_at() const override;

 protected:
  // As Await(), with what is left of a deadline.
  absl::Status AwaitFor(absl::Duration timeout) const;

 private:
  const common::time::Clock* const clock_ = nullptr;

  mutable common::sync::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::optional<common::time::MonotonicTime> done_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_HOST_EVENT_H_
