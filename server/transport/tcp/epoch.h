// The edges of one rank in one epoch and the failure that they share: the first
// one of any edge. Transport, events and calls in streams share it; the loop
// thread only while the transport lives.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_EPOCH_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_EPOCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/host_event.h"
#include "server/transport/tcp/connection.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/mover.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// Thread-safe.
class Epoch final : public ConnectionOwner {
 public:
  // Unavailable when there are no descriptors left. `loop` must outlive
  // the transport, `clock` every event.
  static absl::StatusOr<std::shared_ptr<Epoch>> Create(
      const TransportOptions& options, EventLoop& loop,
      const common::time::Clock& clock);

  const TransportOptions& options() const { return options_; }
  const common::time::Clock& clock() const { return clock_; }
  const std::vector<std::unique_ptr<Connection>>& connections() const {
    return connections_;
  }
  // Null when this rank has no such end.
  Connection* Find(const Edge& edge, EdgeRole role) const;

  // As Mover's; OnReadable() is false once the epoch has failed.
  int ready_fd() const { return mover_.ready_fd(); }
  bool OnReadable();
  // Also returns at once when the event is done.
  absl::Duration Drive(const device::HostEvent& event, absl::Time deadline);
  void StepAside() { mover_.StepAside(); }

  // Transport::ended().
  const device::Event& ended() const { return ended_; }

  // The operation's stream has reached it, with that status.
  void Ready(Connection& connection,
             const std::shared_ptr<Operation>& operation,
             const absl::Status& stream);

  absl::Status Connect(absl::Time deadline);
  void NoteConnected();  // A connection was attached.
  Failure failure() const;
  absl::Status status() const { return failure().status; }
  void OnFailure(std::function<void(const Failure&)> callback);
  void Abort(const absl::Status& cause);
  absl::Status Close(absl::Time deadline);

  void OnBroken(const Failure& failure) override;
  void OnClosed() override;

 private:
  // Whoever waits for it moves the epoch's bytes. Thread-safe.
  class End final : public device::HostEvent {
   public:
    explicit End(Epoch& epoch);
    absl::Status Await(absl::Time deadline) const override;

   private:
    Epoch& epoch_;
  };

  Epoch(const TransportOptions& options, EventLoop& loop,
        const common::time::Clock& clock);
  void TellFailureLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailConnections(const absl::Status& failure);

  // Constant after Create().
  const TransportOptions options_;
  EventLoop& loop_;
  const common::time::Clock& clock_;
  std::vector<std::unique_ptr<Connection>> connections_;
  // Own synchronisation.
  Mover mover_;
  End ended_;

  mutable common::sync::Mutex mutex_;
  Failure failure_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  size_t connected_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t closed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void(const Failure&)> on_failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_EPOCH_H_
