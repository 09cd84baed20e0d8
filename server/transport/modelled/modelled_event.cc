#include "server/transport/modelled/modelled_event.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"

namespace penstock::server::transport::modelled {

using common::sync::MutexLock;
using common::time::MonotonicTime;

std::shared_ptr<EdgeWire::Passage> EdgeWire::Begin(
    std::shared_ptr<device::Event> delivered, int64_t bytes) {
  auto passage = std::make_shared<Passage>(Passage{
      .delivered = std::move(delivered),
      .occupies =
          absl::Seconds(wire_.seconds_per_byte * static_cast<double>(bytes))});
  MutexLock lock(&mutex_);
  under_way_.push_back(passage);
  return passage;
}

void EdgeWire::NoteDelivered() {
  while (true) {
    std::shared_ptr<Passage> oldest;
    {
      MutexLock lock(&mutex_);
      if (under_way_.empty()) return;
      oldest = under_way_.front();
    }
    if (!oldest->delivered->Done()) return;
    const MonotonicTime delivered =
        oldest->delivered->done_at().value_or(clock_.Monotonic());
    MutexLock lock(&mutex_);
    // Unless another thread was faster, after which the event may be about
    // another message.
    if (under_way_.empty() || under_way_.front() != oldest) continue;
    free_ = std::max(free_, delivered) + oldest->occupies;
    oldest->arrival = free_ + wire_.latency;
    under_way_.pop_front();
  }
}

std::optional<MonotonicTime> EdgeWire::Arrival(const Passage& passage) {
  NoteDelivered();
  MutexLock lock(&mutex_);
  return passage.arrival;
}

std::optional<MonotonicTime> EdgeWire::LastArrival() {
  NoteDelivered();
  MutexLock lock(&mutex_);
  if (!under_way_.empty()) return std::nullopt;
  return free_ + wire_.latency;
}

void ModelledEvent::Release() {
  const Bound before = bound();
  if (before.wire == nullptr) return;
  // Noted now, since `delivered` will be about another message.
  CHECK(before.wire->Arrival(*before.passage).has_value())
      << "the event's message before is pending";
  MutexLock lock(&mutex_);
  bound_ = {};
}

void ModelledEvent::Bind(std::shared_ptr<EdgeWire> wire, int64_t bytes) {
  auto passage = wire->Begin(delivered_, bytes);
  MutexLock lock(&mutex_);
  bound_ = {.wire = std::move(wire), .passage = std::move(passage)};
}

ModelledEvent::Bound ModelledEvent::bound() const {
  MutexLock lock(&mutex_);
  return bound_;
}

std::optional<absl::Status> ModelledEvent::Fate() const {
  if (!delivered_->Done()) return std::nullopt;
  const absl::Status delivery = delivered_->Await(absl::InfinitePast());
  const Bound bound = this->bound();
  if (!delivery.ok() || bound.wire == nullptr) return delivery;
  const auto arrival = bound.wire->Arrival(*bound.passage);
  if (!arrival.has_value()) return std::nullopt;
  const device::Event& ended = bound.wire->ended();
  if (const auto at = ended.done_at(); at.has_value() && *at < *arrival) {
    return ended.Await(absl::InfinitePast());
  }
  if (bound.wire->clock().Monotonic() < *arrival) return std::nullopt;
  return absl::OkStatus();
}

absl::Status ModelledEvent::Await(absl::Time deadline) const {
  const absl::Status delivery = delivered_->Await(deadline);
  const Bound bound = this->bound();
  if (!delivery.ok() || bound.wire == nullptr) return delivery;
  const common::time::Clock& clock = bound.wire->clock();
  while (true) {
    if (const auto fate = Fate(); fate.has_value()) return *fate;
    const auto arrival = bound.wire->Arrival(*bound.passage);
    CHECK(arrival.has_value()) << "messages before it are not delivered";
    const absl::Time now = clock.Now();
    if (now >= deadline) return absl::DeadlineExceededError("still under way");
    bound.wire->ended()
        .Await(std::min(deadline, now + (*arrival - clock.Monotonic())))
        .IgnoreError();
  }
}

std::optional<MonotonicTime> ModelledEvent::done_at() const {
  const auto fate = Fate();
  const Bound bound = this->bound();
  if (!fate.has_value() || !fate->ok() || bound.wire == nullptr) {
    return std::nullopt;
  }
  return bound.wire->Arrival(*bound.passage);
}

}  // namespace penstock::server::transport::modelled
