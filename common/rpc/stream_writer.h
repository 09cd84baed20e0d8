// The writing half of a gRPC stream: one write under way, the rest in a queue,
// and an end that comes once. The four streams of the project share it.
#ifndef PENSTOCK_COMMON_RPC_STREAM_WRITER_H_
#define PENSTOCK_COMMON_RPC_STREAM_WRITER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/grpc_status.h"
#include "common/sync/happens_before.h"
#include "common/sync/mutex.h"

namespace penstock::common::rpc {

// What a writer does to its stream. Called with the writer's lock held.
template <typename Message>
struct StreamOperations {
  // The message stays until OnWriteDone().
  std::function<void(const Message*)> start_write;
  // Called once; nothing is written after it.
  std::function<void(const absl::Status&)> end;
  // Whether `end` may come while a write is under way.
  bool ends_over_a_write = false;
};

// Of a server's reactor: the end is Finish(), and does not wait for a reader
// that takes nothing more.
template <typename Message, typename Reactor>
StreamOperations<Message> ServerWrites(Reactor& reactor) {
  return {
      .start_write =
          [&reactor](const Message* message) { reactor.StartWrite(message); },
      .end =
          [&reactor](const absl::Status& status) {
            FinishReactor(reactor, status);
          },
      .ends_over_a_write = true};
}

// Of a client's reactor, which has one hold (AddHold): the end is
// StartWritesDone(), whose status nobody sees, and the hold is given up.
template <typename Message, typename Reactor>
StreamOperations<Message> ClientWrites(Reactor& reactor) {
  return {
      .start_write =
          [&reactor](const Message* message) { reactor.StartWrite(message); },
      .end =
          [&reactor](const absl::Status&) {
            reactor.StartWritesDone();
            reactor.RemoveHold();
          },
      .ends_over_a_write = false};
}

// How many messages may wait, beside the one under way.
struct StreamQueueLimit {
  size_t messages = std::numeric_limits<size_t>::max();
  // One more than that ends the stream with this status. OK: the oldest that
  // waits is dropped in its place.
  absl::Status when_full;
  // Called before that end, with the writer's lock held: cancels the call of a
  // peer that may never take what is under way, behind which the status waits.
  // None: the call lasts until its peer has taken that.
  std::function<void()> cut_off;
};

// A member of a reactor, which calls OnWriteDone(), OnCancel() and OnDone()
// first thing in its reactions of those names. Thread-safe.
template <typename Message>
class StreamWriter {
 public:
  explicit StreamWriter(StreamOperations<Message> operations,
                        StreamQueueLimit limit = {})
      : operations_(std::move(operations)), limit_(std::move(limit)) {
    tag_.Release();
  }

  // Written after what waits. Dropped once the end was asked for.
  void Write(Message message) {
    sync::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    if (queue_.size() >= limit_.messages) {
      if (!limit_.when_full.ok()) {
        if (limit_.cut_off != nullptr) limit_.cut_off();
        EndNow(limit_.when_full);
        return;
      }
      queue_.pop_front();
    }
    queue_.push_back(std::move(message));
    Pump();
  }

  // Ends the stream when everything that waits is written.
  void EndAfterWrites(const absl::Status& status) {
    sync::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    end_ = status;
    Pump();
  }

  // Ends the stream now, or after the write under way where it must; what waits
  // is dropped. Does nothing when the stream has ended.
  void End(const absl::Status& status) {
    sync::MutexLock lock(&mutex_);
    EndNow(status);
  }

  // Runs `start`, which starts another operation of the stream, and returns at
  // once; not when the stream has ended, whose reactor may be gone in a moment.
  template <typename Start>
  void UnlessEnded(Start start) {
    sync::MutexLock lock(&mutex_);
    if (!ended_) start();
  }

  void OnWriteDone(bool ok) {
    tag_.Acquire();
    sync::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) {
      Pump();
    } else {
      EndNow(absl::CancelledError("the stream is broken"));
    }
  }

  void OnCancel() {
    tag_.Acquire();
    End(absl::CancelledError("the call was cancelled"));
  }

  void OnDone() { tag_.Acquire(); }

 private:
  // Starts what can be started: the next write, or the end.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    if (!queue_.empty()) {
      if (writing_) return;
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      tag_.Release();
      operations_.start_write(&outgoing_);
    } else if (end_.has_value() && !writing_) {
      EndStream();
    }
  }

  void EndNow(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ended_) return;
    queue_.clear();
    end_ = status;
    if (!writing_ || operations_.ends_over_a_write) EndStream();
  }

  void EndStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ended_ = true;
    tag_.Release();
    operations_.end(*end_);
  }

  // Constant after construction.
  const StreamOperations<Message> operations_;
  const StreamQueueLimit limit_;
  // Own synchronisation.
  sync::HappensBefore tag_;
  // gRPC's while a write is under way.
  Message outgoing_;

  sync::Mutex mutex_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // Asked for.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_STREAM_WRITER_H_
