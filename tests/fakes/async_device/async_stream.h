// The streams and events of the asynchronous fake (async_device.h).
#ifndef PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_STREAM_H_
#define PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_STREAM_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "server/device/device.h"
#include "server/device/unmodelled_stream.h"
#include "tests/fakes/async_device/async_device.h"

namespace penstock::tests::fakes {

// The thread and the queue of one stream; events that were recorded on it keep
// it alive. Thread-safe.
class StreamQueue {
 public:
  // Called on the queue's thread with the stream's status so far; what it
  // returns becomes the status if that was OK.
  using Item = std::function<absl::Status(const absl::Status&)>;

  StreamQueue(const AsyncDeviceOptions& options, uint32_t seed);
  // Runs what is left (a failed stream skips it) and joins.
  ~StreamQueue();

  // Returns the item's number, from 1.
  int64_t Enqueue(Item item);
  // Lets the items up to `number` run, if they do not anyway. Never blocks.
  void Demand(int64_t number);
  // Demands everything enqueued so far and waits for it.
  absl::Status Drain(absl::Time deadline);
  absl::Status status() const;

 private:
  void Work();
  bool ReadyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AsyncDeviceOptions options_;
  std::minstd_rand delays_;  // Confined to the thread.

  mutable common::sync::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  int64_t enqueued_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t demanded_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last: it uses everything above.
};

// Thread-safe.
class AsyncEvent final : public server::device::Event {
 public:
  // `drops_await` gets the number of the host's await; may be empty.
  explicit AsyncEvent(std::function<bool(int await)> drops_await)
      : drops_await_(std::move(drops_await)) {}

  bool Done() const override;
  absl::Status Await(absl::Time deadline) const override;
  std::optional<common::time::MonotonicTime> done_at() const override {
    return std::nullopt;
  }

  // A wait for the newest record so far, to be called later on any thread.
  std::function<absl::Status()> Waiter() const;

 private:
  friend class AsyncStream;
  struct State;

  const std::function<bool(int await)> drops_await_;
  mutable std::atomic<int> awaits_{0};
  std::shared_ptr<State> state_ = std::make_shared<State>();

  // Shared by the event, pending records and waits: all may outlive the event.
  struct State {
    common::sync::Mutex mutex;
    int64_t recorded ABSL_GUARDED_BY(mutex) = 0;
    int64_t completed ABSL_GUARDED_BY(mutex) = 0;
    absl::Status status ABSL_GUARDED_BY(mutex);
    // Where the newest record is.
    std::weak_ptr<StreamQueue> queue ABSL_GUARDED_BY(mutex);
    int64_t item ABSL_GUARDED_BY(mutex) = 0;
  };
  static void Demand(State& state);
  static absl::Status AwaitRecord(State& state, int64_t record,
                                  absl::Time deadline);
};

// Thread-compatible, as the interface says.
class AsyncStream final : public server::device::UnmodelledStream {
 public:
  AsyncStream(const AsyncDeviceOptions& options, uint32_t seed);

  void Record(server::device::Event& event) override;
  void Wait(const server::device::Event& event) override;
  void Call(std::function<void(const absl::Status&)> function) override;
  absl::Status status() const override { return queue_->status(); }
  absl::Status Synchronize(absl::Time deadline) override {
    return queue_->Drain(deadline);
  }

  // Skipped on a failed stream.
  void Enqueue(std::function<void()> work);

 private:
  std::shared_ptr<StreamQueue> queue_;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_STREAM_H_
