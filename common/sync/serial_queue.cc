#include "common/sync/serial_queue.h"

#include <utility>

namespace penstock::common::sync {

SerialQueue::SerialQueue() : thread_([this] { Run(); }) {}

SerialQueue::~SerialQueue() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void SerialQueue::Post(std::function<void()> task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void SerialQueue::Drain() {
  Notification drained;
  Post([&drained] { drained.Notify(); });
  drained.WaitForNotification();
}

void SerialQueue::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      const auto any = [this] {
        mutex_.AssertHeld();
        return ending_ || !tasks_.empty();
      };
      mutex_.Await(absl::Condition(&any));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace penstock::common::sync
