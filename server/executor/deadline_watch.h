// The thread that asks an executor whether its command is overdue.
#ifndef PENSTOCK_SERVER_EXECUTOR_DEADLINE_WATCH_H_
#define PENSTOCK_SERVER_EXECUTOR_DEADLINE_WATCH_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace penstock::server::executor {

// Thread-safe. Calls `check` (Executor::CheckDeadline), waits as long as that
// says but at most `longest`, and again, until destroyed.
class DeadlineWatch {
 public:
  // ResourceExhausted where the system has no thread left.
  static absl::StatusOr<std::unique_ptr<DeadlineWatch>> Start(
      std::function<absl::Duration()> check, absl::Duration longest);
  ~DeadlineWatch();
  DeadlineWatch(const DeadlineWatch&) = delete;
  DeadlineWatch& operator=(const DeadlineWatch&) = delete;

 private:
  DeadlineWatch(std::function<absl::Duration()> check, absl::Duration longest);
  void Watch();

  const std::function<absl::Duration()> check_;
  const absl::Duration longest_;

  common::sync::Mutex mutex_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_DEADLINE_WATCH_H_
