#include "tests/fakes/async_device/async_stream.h"

namespace penstock::tests::fakes {

using common::sync::MutexLock;
using server::device::Event;

StreamQueue::StreamQueue(const AsyncDeviceOptions& options, uint32_t seed)
    : options_(options), delays_(seed + 1), thread_([this] { Work(); }) {}

StreamQueue::~StreamQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

int64_t StreamQueue::Enqueue(Item item) {
  MutexLock lock(&mutex_);
  items_.push_back(std::move(item));
  return ++enqueued_;
}

void StreamQueue::Demand(int64_t number) {
  MutexLock lock(&mutex_);
  if (number > demanded_) demanded_ = number;
}

absl::Status StreamQueue::Drain(absl::Time deadline) {
  MutexLock lock(&mutex_);
  const int64_t last = enqueued_;
  if (last > demanded_) demanded_ = last;
  const auto done = [this, last]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return finished_ >= last;
  };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&done), deadline)) {
    return absl::DeadlineExceededError("stream still busy");
  }
  return status_;
}

absl::Status StreamQueue::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

bool StreamQueue::ReadyLocked() const {
  if (stopping_) return true;
  if (items_.empty()) return false;
  return options_.schedule == AsyncDeviceOptions::Schedule::kRandom ||
         finished_ < demanded_;
}

void StreamQueue::Work() {
  while (true) {
    Item item;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &StreamQueue::ReadyLocked));
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
      status = status_;
    }
    if (options_.schedule == AsyncDeviceOptions::Schedule::kRandom &&
        delays_() % 4 == 0) {
      absl::SleepFor(options_.longest_delay * (delays_() % 1024) / 1024);
    }
    status = item(status);
    item = nullptr;  // What it captured goes before it counts as finished.
    MutexLock lock(&mutex_);
    ++finished_;
    if (status_.ok()) status_ = status;
  }
}

bool AsyncEvent::Done() const {
  Demand(*state_);
  MutexLock lock(&state_->mutex);
  return state_->completed >= state_->recorded;
}

absl::Status AsyncEvent::Await(absl::Time deadline) const {
  if (drops_await_ && drops_await_(awaits_++)) return absl::OkStatus();
  Demand(*state_);
  int64_t record = 0;
  {
    MutexLock lock(&state_->mutex);
    record = state_->recorded;
  }
  return AwaitRecord(*state_, record, deadline);
}

std::function<absl::Status()> AsyncEvent::Waiter() const {
  MutexLock lock(&state_->mutex);
  return [state = state_, record = state_->recorded] {
    Demand(*state);
    return AwaitRecord(*state, record, absl::InfiniteFuture());
  };
}

void AsyncEvent::Demand(State& state) {
  std::shared_ptr<StreamQueue> queue;
  int64_t item = 0;
  {
    MutexLock lock(&state.mutex);
    queue = state.queue.lock();
    item = state.item;
  }
  if (queue != nullptr) queue->Demand(item);
}

absl::Status AsyncEvent::AwaitRecord(State& state, int64_t record,
                                     absl::Time deadline) {
  MutexLock lock(&state.mutex);
  const auto done = [&state, record]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                        state.mutex) { return state.completed >= record; };
  if (!state.mutex.AwaitWithDeadline(absl::Condition(&done), deadline)) {
    return absl::DeadlineExceededError("event still pending");
  }
  return state.status;
}

AsyncStream::AsyncStream(const AsyncDeviceOptions& options, uint32_t seed)
    : queue_(std::make_shared<StreamQueue>(options, seed)) {}

void AsyncStream::Record(Event& event) {
  auto& own = dynamic_cast<AsyncEvent&>(event);
  const std::shared_ptr<AsyncEvent::State> state = own.state_;
  // The record counts before its item can run.
  int64_t record = 0;
  {
    MutexLock lock(&state->mutex);
    record = ++state->recorded;
  }
  const int64_t item =
      queue_->Enqueue([state, record](const absl::Status& status) {
        MutexLock lock(&state->mutex);
        if (record > state->completed) {
          state->completed = record;
          state->status = status;
        }
        return absl::OkStatus();
      });
  MutexLock lock(&state->mutex);
  state->queue = queue_;
  state->item = item;
}

void AsyncStream::Wait(const Event& event) {
  std::function<absl::Status()> wait;
  if (const auto* own = dynamic_cast<const AsyncEvent*>(&event)) {
    wait = own->Waiter();
  } else {
    wait = [&event] { return event.Await(absl::InfiniteFuture()); };
  }
  queue_->Enqueue([wait = std::move(wait)](const absl::Status& status) {
    return status.ok() ? wait() : absl::OkStatus();
  });
}

void AsyncStream::Call(std::function<void(const absl::Status&)> function) {
  queue_->Demand(queue_->Enqueue(
      [function = std::move(function)](const absl::Status& status) {
        function(status);
        return absl::OkStatus();
      }));
}

void AsyncStream::Enqueue(std::function<void()> work) {
  queue_->Enqueue([work = std::move(work)](const absl::Status& status) {
    if (status.ok()) work();
    return absl::OkStatus();
  });
}

}  // namespace penstock::tests::fakes
