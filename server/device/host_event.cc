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

void HostEvent::Signal(const absl::Status& status) {
  std::optional<common::time::MonotonicTime> now;
  if (clock_ != nullptr) now = clock_->Monotonic();
  common::sync::MutexLock lock(&mutex_);
  if (done_) return;
  done_ = true;
  done_at_ = now;
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
  if (!mutex_.AwaitWithTimeout(absl::Condition(&done_), timeout)) {
    return absl::DeadlineExceededError("event still pending");
  }
  return status_;
}

}  // namespace penstock::server::device
