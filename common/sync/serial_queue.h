// A thread that runs closures one at a time, in the order of posting.
#ifndef PENSTOCK_COMMON_SYNC_SERIAL_QUEUE_H_
#define PENSTOCK_COMMON_SYNC_SERIAL_QUEUE_H_

#include <deque>
#include <functional>
#include <thread>

#include "common/sync/mutex.h"

namespace penstock::common::sync {

// Thread-safe. What is posted runs without a lock held and may post more.
class SerialQueue {
 public:
  SerialQueue();
  // Runs everything that was posted, then joins.
  ~SerialQueue();
  SerialQueue(const SerialQueue&) = delete;
  SerialQueue& operator=(const SerialQueue&) = delete;

  void Post(std::function<void()> task);

  // Returns when everything posted before the call has run. Not from a task.
  void Drain();

 private:
  void Run();

  Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_SERIAL_QUEUE_H_
