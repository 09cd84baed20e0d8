// When messages arrive that another transport has delivered, if they travel on
// a modelled wire. Internal to this folder.
#ifndef PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_EVENT_H_
#define PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_EVENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/device.h"
#include "server/transport/modelled/modelled_transport.h"

namespace penstock::server::transport::modelled {

// One end of one edge. Each end models the same: a message takes the wire when
// it was delivered and the wire is free, and arrives the latency later. Lasts
// as long as one of its events. Thread-safe.
class EdgeWire {
 public:
  // A message on its way.
  struct Passage {
    std::shared_ptr<device::Event> delivered;  // The other transport's.
    absl::Duration occupies;                   // The wire.
    std::optional<common::time::MonotonicTime> arrival;  // Once delivered.
  };

  // `ended` is the other transport's, and notes when that was. Borrows the
  // clock.
  EdgeWire(const Wire& wire, const common::time::Clock& clock,
           std::shared_ptr<const device::Event> ended)
      : wire_(wire), clock_(clock), ended_(std::move(ended)) {}

  const common::time::Clock& clock() const { return clock_; }
  const device::Event& ended() const { return *ended_; }

  // The next message of the edge. `delivered` was pending after the messages
  // before had begun, and is done after theirs.
  std::shared_ptr<Passage> Begin(std::shared_ptr<device::Event> delivered,
                                 int64_t bytes);
  // nullopt: it is not delivered yet.
  std::optional<common::time::MonotonicTime> Arrival(const Passage& passage);
  // Of the newest message.
  std::optional<common::time::MonotonicTime> LastArrival();

 private:
  // Takes what is delivered off under_way_. Locks itself, a message at a time:
  // the other transport's events must not be asked with a lock held.
  void NoteDelivered();

  const Wire wire_;
  const common::time::Clock& clock_;
  const std::shared_ptr<const device::Event> ended_;

  common::sync::Mutex mutex_;
  std::deque<std::shared_ptr<Passage>> under_way_ ABSL_GUARDED_BY(mutex_);
  common::time::MonotonicTime free_ ABSL_GUARDED_BY(mutex_);
};

// Done when the message has arrived. Thread-safe.
class ModelledEvent final : public device::Event {
 public:
  // Of the other transport.
  explicit ModelledEvent(std::shared_ptr<device::Event> delivered)
      : delivered_(std::move(delivered)) {}

  // The event that the other transport completes.
  device::Event& delivered() { return *delivered_; }

  // Forgets the message that it was about. REQUIRES: done.
  void Release();
  // It is about the wire's next message, which the other transport has begun.
  void Bind(std::shared_ptr<EdgeWire> wire, int64_t bytes);

  bool Done() const override { return Fate().has_value(); }
  absl::Status Await(absl::Time deadline) const override;
  std::optional<common::time::MonotonicTime> done_at() const override;

 private:
  struct Bound {
    std::shared_ptr<EdgeWire> wire;  // Null: to none yet.
    std::shared_ptr<EdgeWire::Passage> passage;
  };
  Bound bound() const;
  // nullopt: it is pending.
  std::optional<absl::Status> Fate() const;

  const std::shared_ptr<device::Event> delivered_;

  mutable common::sync::Mutex mutex_;
  Bound bound_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::transport::modelled

#endif  // PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_EVENT_H_
