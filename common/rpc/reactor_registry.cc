#include "common/rpc/reactor_registry.h"

namespace penstock::common::rpc {

bool ReactorRegistry::Add(ClosableReactor* reactor) {
  sync::MutexLock lock(&mutex_);
  if (closed_) return false;
  live_.insert(reactor);
  return true;
}

void ReactorRegistry::Remove(ClosableReactor* reactor) {
  sync::MutexLock lock(&mutex_);
  live_.erase(reactor);
}

void ReactorRegistry::CloseAll(const absl::Status& status) {
  // Closing under the lock keeps a reactor from being deleted meanwhile:
  // OnDone runs on a gRPC thread and waits in Remove().
  sync::MutexLock lock(&mutex_);
  closed_ = true;
  for (ClosableReactor* reactor : live_) reactor->Close(status);
}

int ReactorRegistry::size() const {
  sync::MutexLock lock(&mutex_);
  return static_cast<int>(live_.size());
}

}  // namespace penstock::common::rpc
