#include "server/device/virtual/virtual_stream.h"

#include <sys/prctl.h>

#include <algorithm>

#include "common/log/log.h"
#include "server/device/host/inline_stream.h"

namespace penstock::server::device::virtual_device {

using common::time::MonotonicTime;

void VirtualStream::Record(Event& event) {
  static_cast<host::InlineEvent&>(event).Complete(status_);
}

void VirtualStream::Wait(const Event& event) {
  if (!status_.ok()) return;
  const bool done = event.Done();
  status_ = event.Await(absl::InfiniteFuture());
  if (const auto at = event.done_at(); at.has_value()) {
    now_ = std::max(now_, *at);
  } else if (!done) {
    now_ = std::max(now_, clock_.Monotonic());
  }
}

void VirtualStream::Call(std::function<void(const absl::Status&)> function) {
  function(status_);
}

void VirtualStream::Occupy(absl::Duration time, const Event& stop) {
  now_ += time;
  if (status_.ok()) HoldUntil(now_, stop);
}

void VirtualStream::HoldUntil(MonotonicTime end, const Event& stop) {
  if (!wakes_exactly_) {
    // The kernel bundles the wake-ups of ordinary threads, up to 50 us late.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    wakes_exactly_ = true;
  }
  while (true) {
    const absl::Duration left = end - clock_.Monotonic();
    if (left <= absl::ZeroDuration()) return;
    stop.Await(clock_.Now() + left).IgnoreError();
    if (!stop.Done()) continue;
    status_ = stop.Await(absl::InfiniteFuture());
    CHECK(!status_.ok()) << "what stops a stream is pending, or has failed";
    return;
  }
}

}  // namespace penstock::server::device::virtual_device
