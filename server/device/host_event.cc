#include "server/device/host_event.h"

#include "common/log/log.h"

namespace penstock::server::device {

void HostEvent::Reset() {
  common::sync::MutexLock lock(&mutex_);
  CHECK(done_) << "reset of a pending event";
  done_ = false;
  done_at_.reset();
  status_ = absl::OkStatus();
}

void HostEvent::Signal(const absl::Status& status,
                       std::optional<common::time::MonotonicTime> at) {
  if (clock_ == nullptr) {
    at.reset();
  } else if (!at.has_value()) {
    at = clock_->Monotonic();
  }
  common::sync::MutexLock lock(&mutex_);
  if (done_) return;
  done_ = true;
  done_at_ = at;
  status_ = status;
}

std::optional<common::time::MonotonicTime> HostEvent::done_at() const {
  common::sync::MutexLock lock(&mutex_);
  return done_at_;
}

bool HostEvent::Done() const {
  common::sync::MutexLock lock(&mutex_);
  return done_;
}

absl::Status HostEvent::Await(absl::Time deadline) const {
  return AwaitFor(common::sync::TimeoutTo(deadline));
}

absl::Status HostEvent::AwaitFor(absl::Duration timeout) const {
  common::sync::MutexLock lock(&mutex_);
  // A time that is over is no wait at all: the lock's own would sleep a little.
  if (timeout > absl::ZeroDuration()) {
    mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout);
  }
  if (!done_) {
    return absl::DeadlineExceededError("event still pending");
  }
  return status_;
}

}  // namespace penstock::server::device
