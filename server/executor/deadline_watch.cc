#include "server/executor/deadline_watch.h"

#include <algorithm>
#include <utility>

namespace penstock::server::executor {

DeadlineWatch::DeadlineWatch(std::function<absl::Duration()> check,
                             absl::Duration longest)
    : check_(std::move(check)), longest_(longest) {
  thread_ = std::thread([this] {
    while (true) {
      const absl::Duration wait = std::min(check_(), longest_);
      common::sync::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stops_), wait)) return;
    }
  });
}

DeadlineWatch::~DeadlineWatch() {
  {
    common::sync::MutexLock lock(&mutex_);
    stops_ = true;
  }
  thread_.join();
}

}  // namespace penstock::server::executor
