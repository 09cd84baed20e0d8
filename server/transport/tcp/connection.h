// One end of one edge: its operations, its protocol and, once the edge stands,
// its socket. How bytes become frames is in frame_reader.h and frame_writer.h.
//
// Any thread moves bytes, under the connection's lock and never blocking there:
// who sends or posts writes at once what it can; who has found the socket ready
// (the loop thread, or one that waits for an event: mover.h) does the rest.
//
//   [1] kConnecting --Attach--> [2] kOpen --goodbyes--> [3] kClosed
//            |                       |                       :
//            +-----------------------+--> [4] kFailed <......:
//
//   from     on                                                    to
//   1        Attach                                                2
//   2        both goodbyes are said                                3
//   2        the peer leaves after its own, nothing is pending     3
//   1, 2     Fail: another edge failed, or an abort                4
//   1, 2     the stream of an operation failed before it           4
//   2        a wrong byte, a broken socket, an end without goodbye 4
//   2, 3     an operation begins after the peer's goodbye          4
//
// What a connection finds itself is told to its owner: OnClosed, once, for 3;
// OnBroken for 4, upon which the owner fails all connections of the epoch. In 4
// operations fail at once; nothing leads out of it.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_CONNECTION_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/transport/tcp/frame_reader.h"
#include "server/transport/tcp/frame_writer.h"
#include "server/transport/tcp/protocol.h"
#include "server/transport/tcp/socket.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// What a connection tells its epoch; called without the connection's lock.
// Thread-safe.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void OnBroken(const Failure& failure) = 0;
  virtual void OnClosed() = 0;
};

// Thread-safe.
class Connection {
 public:
  struct Deps {
    ConnectionOwner& owner;
    int epoll_fd;  // The epoch's; `index` is this connection's data in it.
    uint32_t index;
  };

  Connection(const EdgeOptions& options, const Deps& deps);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const EdgeOptions& options() const { return options_; }
  uint32_t index() const { return deps_.index; }

  // The edge stands. Closes the socket when the connection was failed before.
  void Attach(Fd socket);

  // Queues the operation, whose event is pending; it counts from Ready() on.
  void Begin(const std::shared_ptr<Operation>& operation);
  // The operation's stream has reached it, with that status.
  //
  // Both: true when the connection now owes the peer word of what was posted
  // or, with kDelayed, received. The caller gives it by Flush(), in its own
  // time, so that one frame can cover several messages.
  bool Ready(const std::shared_ptr<Operation>& operation,
             const absl::Status& stream);
  // The socket is ready, and was at `since`: moves a bounded number of bytes.
  bool OnEvents(Acks acks, common::time::MonotonicTime since);
  void Flush();

  void SayGoodbye();
  // Fails all operations with `failure`, now and later. A broken connection is
  // cut; others stay open, silent, until Cut().
  void Fail(const absl::Status& failure);
  // Ends the connection for the peer too.
  void Cut();

  bool standing() const;    // Attached at some time.
  bool connecting() const;  // Neither attached nor failed yet.
  bool closed() const;      // Goodbyes both ways.
  size_t pending() const;
  // Why it does not stand yet, for Connect's error.
  void NoteProblem(const absl::Status& problem);
  std::string Problem() const;

 private:
  enum class State { kConnecting, kOpen, kClosed, kFailed };
  // What has to be told to the owner, once the lock is free.
  struct News {
    absl::Status failure;
    bool closed = false;
    bool owes = false;  // The peer word: what Ready() and OnEvents() return.
  };
  void Tell(const News& news);
  // Writes what the socket takes, within a bound, or leaves it if it may wait.
  News WriteOrOweLocked(Acks acks, size_t budget)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes what the socket takes, within a bound, and updates everything.
  News WriteAndSettleLocked(size_t budget)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadLocked(size_t budget, common::time::MonotonicTime since)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteLocked(size_t budget) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  News BreakLocked(const absl::Status& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LostLocked(absl::string_view how) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UnregisterLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the epoch's epoll what this connection waits for.
  void UpdateInterestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // "activation 0->1: peer stage-1 (127.0.0.1:4711)".
  std::string WhoLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EdgeOptions options_;
  const Deps deps_;

  mutable common::sync::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kConnecting;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // What failure_ was before Fail(): copies of it may still end in the loop's
  // thread, by code of abseil that TSan does not see.
  absl::Status earlier_failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status problem_ ABSL_GUARDED_BY(mutex_);
  bool standing_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_closed_ ABSL_GUARDED_BY(mutex_) = false;
  Fd socket_ ABSL_GUARDED_BY(mutex_);
  std::string address_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<Protocol> protocol_ ABSL_PT_GUARDED_BY(mutex_);

  FrameReader reader_ ABSL_GUARDED_BY(mutex_);
  FrameWriter writer_ ABSL_GUARDED_BY(mutex_);
  bool wants_to_write_ ABSL_GUARDED_BY(mutex_) = false;

  uint32_t interest_ ABSL_GUARDED_BY(mutex_) = 0;  // As epoll knows it.
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_CONNECTION_H_
