// The edges of one rank in one epoch and what they share: the first failure,
// and who moves their bytes. Transport, events and calls in streams share it;
// the loop thread only while the transport lives.
//
// Who moves the bytes. Usually the loop thread. A thread that waits for an
// event takes the sockets over while it waits (Drive), so that a message wakes
// one thread and not two in turn; when it has gone, the loop thread takes them
// back after a short grace, in which the same thread mostly comes again:
//
//        Drive            the event is done
//   kLoop ----> kDriver --------------------> kGrace
//     ^            ^          Drive             |
//     |            +----------------------------+
//     +----- no driver for one timer period ----+
//
// The sockets are in the set `sockets_`. The loop thread watches the set
// `gate_`, which holds the timer and, in kLoop only, `sockets_`.
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
#include "server/transport/tcp/socket.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// Thread-safe.
class Epoch final : public ConnectionOwner {
 public:
  // ResourceExhausted when there are no descriptors left. `loop` must outlive
  // the transport, `clock` every event.
  static absl::StatusOr<std::shared_ptr<Epoch>> Create(
      const TransportOptions& options, EventLoop& loop,
      const common::time::Clock& clock);

  const TransportOptions& options() const { return options_; }
  const std::vector<std::unique_ptr<Connection>>& connections() const {
    return connections_;
  }
  // Null when this rank has no such end.
  Connection* Find(const Edge& edge, EdgeRole role) const;

  // Readable while there is something for the loop thread, which then calls
  // OnReadable(); false: the epoch has failed, do not watch it any longer.
  int ready_fd() const { return gate_.get(); }
  bool OnReadable();

  // Moves the bytes of all connections on the calling thread until `event` is
  // done or the deadline has passed; returns at once when another thread does.
  void Drive(const device::HostEvent& event, absl::Time deadline);

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
  enum class Mover { kLoop, kDriver, kGrace };

  Epoch(const TransportOptions& options, EventLoop& loop,
        const common::time::Clock& clock);
  absl::Status OpenDescriptors();
  void FailConnections(const absl::Status& failure);
  // The event of `fd` in the set `set` is the number `data`.
  static absl::Status Watch(const Fd& set, const Fd& fd, uint32_t data);
  void ShowSocketsToLoop(bool shown) ABSL_EXCLUSIVE_LOCKS_REQUIRED(move_mutex_);
  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(move_mutex_);
  void OweLocked(uint32_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(move_mutex_);
  void FlushOwing(const std::vector<uint32_t>& owing);

  // Constant after Create().
  const TransportOptions options_;
  EventLoop& loop_;
  const common::time::Clock& clock_;
  Fd sockets_;  // An epoll set.
  Fd gate_;     // An epoll set.
  Fd timer_;    // A timerfd.
  Fd wake_;     // An eventfd in sockets_, written once: frees the driver.
  std::vector<std::unique_ptr<Connection>> connections_;

  // Held by the loop thread while it moves bytes, so that no event becomes done
  // behind the back of a driver; never held while waiting for a socket.
  common::sync::Mutex move_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  Mover mover_ ABSL_GUARDED_BY(move_mutex_) = Mover::kLoop;
  // How often a driver has stopped; and at the last setting of the timer, which
  // is not set anew each time.
  uint64_t drives_ ABSL_GUARDED_BY(move_mutex_) = 0;
  uint64_t drives_at_timer_ ABSL_GUARDED_BY(move_mutex_) = 0;
  int64_t grace_ns_ ABSL_GUARDED_BY(move_mutex_);
  bool timer_runs_ ABSL_GUARDED_BY(move_mutex_) = false;
  // Connections that owe their peers word of what was received or posted. The
  // timer runs while there are any.
  std::vector<uint32_t> owing_ ABSL_GUARDED_BY(move_mutex_);

  mutable common::sync::Mutex mutex_;
  Failure failure_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  size_t connected_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t closed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void(const Failure&)> on_failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_EPOCH_H_
