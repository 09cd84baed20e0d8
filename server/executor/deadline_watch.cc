#include "server/executor/deadline_watch.h"

#include <algorithm>
#include <utility>

#include "common/status/status_macros.h"
#include "common/sync/thread.h"

namespace penstock::server::executor {

absl::StatusOr<std::unique_ptr<DeadlineWatch>> DeadlineWatch::Start(
    std::function<absl::Duration()> check, absl::Duration longest) {
  std::unique_ptr<DeadlineWatch> watch(
      new DeadlineWatch(std::move(check), longest));
  ASSIGN_OR_RETURN(
      watch->thread_,
      common::sync::StartThread([watch = watch.get()] { watch->Watch(); }));
  return watch;
}

DeadlineWatch::DeadlineWatch(std::function<absl::Duration()> check,
                             absl::Duration longest)
    : check_(std::move(check)), longest_(longest) {}

DeadlineWatch::~DeadlineWatch() {
  {
    common::sync::MutexLock lock(&mutex_);
    stops_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void DeadlineWatch::Watch() {
  while (true) {
    const absl::Duration wait = std::min(check_(), longest_);
    common::sync::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stops_), wait)) return;
  }
}

}  // namespace penstock::server::executor
