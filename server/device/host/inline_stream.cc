#include "server/device/host/inline_stream.h"

namespace penstock::server::device::host {

void InlineEvent::Complete(const absl::Status& status) {
  common::sync::MutexLock lock(&mutex_);
  status_ = status;
}

absl::Status InlineEvent::Await(absl::Time /*deadline*/) const {
  common::sync::MutexLock lock(&mutex_);
  return status_;
}

void InlineStream::Record(Event& event) {
  static_cast<InlineEvent&>(event).Complete(status_);
}

void InlineStream::Wait(const Event& event) {
  if (!status_.ok()) return;
  status_ = event.Await(absl::InfiniteFuture());
}

void InlineStream::Call(std::function<void(const absl::Status&)> function) {
  function(status_);
}

}  // namespace penstock::server::device::host
