// Streams of the devices that compute on the calling thread.
//
// "Enqueued" work runs before the enqueuing call returns, so that an event is
// done as soon as it is recorded. Only a wait on a HostEvent (a transport's
// completion) blocks.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_INLINE_STREAM_H_
#define PENSTOCK_SERVER_DEVICE_HOST_INLINE_STREAM_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/check_args.h"
#include "server/device/device.h"
#include "server/device/float_mode.h"
#include "server/device/unmodelled_stream.h"

namespace penstock::server::device::host {

// Always done: it only carries how the stream stood when it was recorded.
// Thread-safe.
class InlineEvent final : public Event {
 public:
  void Complete(const absl::Status& status);

  bool Done() const override { return true; }
  absl::Status Await(absl::Time deadline) const override;
  std::optional<common::time::MonotonicTime> done_at() const override {
    return std::nullopt;
  }

 private:
  mutable common::sync::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// Thread-compatible.
class InlineStream final : public UnmodelledStream {
 public:
  // REQUIRES: `event` is an InlineEvent.
  void Record(Event& event) override;
  void Wait(const Event& event) override;
  void Call(std::function<void(const absl::Status&)> function) override;
  absl::Status status() const override { return status_; }
  absl::Status Synchronize(absl::Time /*deadline*/) override { return status_; }

 private:
  absl::Status status_;
};

// What every op of an inline device begins with: checks the arguments, and
// flushes denormals in this thread. False: the stream has failed, and the op
// must do nothing.
template <typename Args>
bool EnterInlineOp(const Stream& stream, const Args& args) {
  CheckArgs(args);
  SetFlushDenormals();
  return stream.status().ok();
}

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_INLINE_STREAM_H_
