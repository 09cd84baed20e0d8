// An inline stream with a time of its own, as a GPU's stream has: work that is
// queued back to back starts when the work before it ends, however late the
// thread that runs it wakes up.
//
//   start = max(end of the work before, when what it waits for was there)
//   end   = start + modelled time
//
// What it waits for was there when its event says so (Event::done_at), which
// the thread may have slept through. The thread is held until `end`, so nothing
// is seen of the work before. A thread that comes late, since its math or its
// waking up took longer, goes on at once; the modelled times do not slip. So
// whoever begins something new lets it wait for an event of now.
#ifndef PENSTOCK_SERVER_DEVICE_VIRTUAL_VIRTUAL_STREAM_H_
#define PENSTOCK_SERVER_DEVICE_VIRTUAL_VIRTUAL_STREAM_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/device/device.h"

namespace penstock::server::device::virtual_device {

// Thread-compatible: one thread for its life, once it occupies.
class VirtualStream final : public Stream {
 public:
  // Borrows the clock.
  explicit VirtualStream(const common::time::Clock& clock) : clock_(clock) {}

  // REQUIRES: `event` is an InlineEvent.
  void Record(Event& event) override;
  void Wait(const Event& event) override;
  void Call(std::function<void(const absl::Status&)> function) override;
  // Blocks until the time is over on the clock, or `stop` fails.
  void Occupy(absl::Duration time, const Event& stop) override;
  std::optional<common::time::MonotonicTime> modelled_now() const override {
    return now_;
  }
  absl::Status status() const override { return status_; }
  absl::Status Synchronize(absl::Time /*deadline*/) override { return status_; }

 private:
  void HoldUntil(common::time::MonotonicTime end, const Event& stop);

  const common::time::Clock& clock_;
  absl::Status status_;
  common::time::MonotonicTime now_;  // How far it has come.
  bool wakes_exactly_ = false;       // This thread's timers are.
};

}  // namespace penstock::server::device::virtual_device

#endif  // PENSTOCK_SERVER_DEVICE_VIRTUAL_VIRTUAL_STREAM_H_
