// Who moves the bytes of an epoch's connections. Usually the loop thread. A
// thread that waits for an event takes the sockets over while it waits (Drive),
// so that a message wakes one thread and not two in turn; when it has gone, the
// loop thread takes them back after a short grace, in which the same thread
// mostly comes again:
//
//             Drive               Drive ends
//   [1] kLoop ----> [2] kDriver -------------> [3] kGrace
//     ^                  ^          Drive            |
//     |                  +---------------------------+
//     +------- no drive for one timer period --------+
//
//   from  on                                                          to
//   1, 3  Drive (in 2 it returns at once: one thread is enough)       2
//   2     the event is done, its time is over, or Stop()              3
//   3     StepAside, or the timer runs out and no drive has ended     1
//         since it was set
//   3     the timer runs out otherwise: it is set again               3
//
// The sockets are in the set `sockets_`. The loop thread watches the set
// `gate_`, which holds the timer and, in kLoop only, `sockets_`.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_MOVER_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_MOVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/host_event.h"
#include "server/transport/tcp/connection.h"
#include "server/transport/tcp/socket.h"

namespace penstock::server::transport::tcp {

// Thread-safe.
class Mover {
 public:
  // `connections` are numbered by their place, and stay as they are once bytes
  // move. `acks` are a driver's. Borrows connections and clock.
  Mover(const std::vector<std::unique_ptr<Connection>>& connections,
        const common::time::Clock& clock, Acks acks);
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // First of all. Unavailable when there are no descriptors left.
  absl::Status Open();

  // The epoll set in which connections register their sockets.
  int sockets_fd() const { return sockets_.get(); }

  // Readable while there is something for the loop thread, which then calls
  // OnReadable(); false: Stop() was called, do not watch it any longer.
  int ready_fd() const { return gate_.get(); }
  bool OnReadable();

  // Moves the bytes of all connections on the calling thread until `event` is
  // done, the time is over or Stop() was called; returns at once when another
  // thread does. Returns what is left of the time.
  absl::Duration Drive(const device::HostEvent& event, absl::Duration timeout);

  // The thread that drives does not come again soon: in kGrace the loop thread
  // has the sockets back at once.
  void StepAside();

  // The connection owes its peer word of what was received or posted: given
  // now, or soon where one frame may cover more of it.
  void Owes(Connection& connection);

  // Frees the driver. The epoch has failed.
  void Stop();

 private:
  enum class State { kLoop, kDriver, kGrace };

  void ShowSocketsToLoopLocked(bool shown)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndGraceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTimerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The timer has run out: returns the connections that owe.
  std::vector<uint32_t> OnTimerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OweLocked(uint32_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after Open().
  const std::vector<std::unique_ptr<Connection>>& connections_;
  const common::time::Clock& clock_;
  const Acks acks_;
  const int64_t least_grace_ns_;
  Fd sockets_;  // An epoll set.
  Fd gate_;     // An epoll set.
  Fd timer_;    // A timerfd.
  Fd wake_;     // An eventfd in sockets_, written once: frees the driver.

  // Held by the loop thread while it moves bytes, so that no event becomes done
  // behind the back of a driver; never held while waiting for a socket. Taken
  // before any other lock of this folder.
  common::sync::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kLoop;
  // How often a driver has stopped; and at the last setting of the timer, which
  // is not set anew each time.
  uint64_t drives_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t drives_at_timer_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t grace_ns_ ABSL_GUARDED_BY(mutex_);
  bool timer_runs_ ABSL_GUARDED_BY(mutex_) = false;
  // Connections that owe their peers word. The timer runs while there are any.
  std::vector<uint32_t> owing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_MOVER_H_
