#include "server/transport/tcp/epoch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::transport::tcp {

using common::sync::MutexLock;

absl::StatusOr<std::shared_ptr<Epoch>> Epoch::Create(
    const TransportOptions& options, EventLoop& loop,
    const common::time::Clock& clock) {
  std::shared_ptr<Epoch> epoch(new Epoch(options, loop, clock));
  RETURN_IF_ERROR(epoch->mover_.Open());
  for (const EdgeOptions& edge : options.edges) {
    epoch->connections_.push_back(std::make_unique<Connection>(
        edge, Connection::Deps{
                  .owner = *epoch,
                  .epoll_fd = epoch->mover_.sockets_fd(),
                  .index = static_cast<uint32_t>(epoch->connections_.size())}));
  }
  return epoch;
}

Epoch::Epoch(const TransportOptions& options, EventLoop& loop,
             const common::time::Clock& clock)
    : options_(options),
      loop_(loop),
      clock_(clock),
      mover_(connections_, clock, options.acks),
      ended_(*this) {}

Epoch::End::End(Epoch& epoch) : HostEvent(epoch.clock_), epoch_(epoch) {
  Reset();
}

absl::Status Epoch::End::Await(absl::Time deadline) const {
  return AwaitFor(epoch_.Drive(*this, deadline));
}

absl::Duration Epoch::Drive(const device::HostEvent& event,
                            absl::Time deadline) {
  const absl::Duration timeout = common::sync::TimeoutTo(deadline);
  return event.Done() ? timeout : mover_.Drive(event, timeout);
}

Connection* Epoch::Find(const Edge& edge, EdgeRole role) const {
  for (const auto& connection : connections_) {
    if (connection->options().edge == edge &&
        connection->options().role == role) {
      return connection.get();
    }
  }
  return nullptr;
}

bool Epoch::OnReadable() { return status().ok() && mover_.OnReadable(); }

void Epoch::Ready(Connection& connection,
                  const std::shared_ptr<Operation>& operation,
                  const absl::Status& stream) {
  if (connection.Ready(operation, stream)) {
    mover_.Owes(connection);
  }
}

void Epoch::NoteConnected() {
  MutexLock lock(&mutex_);
  ++connected_;
}

absl::Status Epoch::Connect(absl::Time deadline) {
  {
    MutexLock lock(&mutex_);
    const auto settled = [this] {
      mutex_.AssertHeld();
      return !failure_.status.ok() || connected_ == connections_.size();
    };
    if (mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
      return failure_.status;
    }
  }
  std::vector<std::string> missing;
  for (const auto& connection : connections_) {
    if (!connection->standing()) missing.push_back(connection->Problem());
  }
  const absl::Status late = absl::DeadlineExceededError(
      absl::StrCat(missing.size(), " of ", connections_.size(),
                   " edges do not stand: ", absl::StrJoin(missing, "; ")));
  absl::Status result;
  {
    MutexLock lock(&mutex_);
    if (failure_.status.ok()) failure_.status = late;
    result = failure_.status;
  }
  FailConnections(result);
  return result;
}

Failure Epoch::failure() const {
  MutexLock lock(&mutex_);
  return failure_;
}

void Epoch::OnFailure(std::function<void(const Failure&)> callback) {
  MutexLock lock(&mutex_);
  on_failure_ = std::move(callback);
  if (failure_.edge.has_value()) TellFailureLocked();
}

void Epoch::TellFailureLocked() {
  if (!on_failure_) return;
  // On the loop thread, which the transport's destructor waits for.
  loop_.Run(
      [callback = on_failure_, failure = failure_] { callback(failure); });
}

void Epoch::FailConnections(const absl::Status& failure) {
  mover_.Stop();
  for (const auto& connection : connections_) connection->Fail(failure);
  ended_.Signal(failure);
}

void Epoch::OnBroken(const Failure& failure) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.status.ok()) return;
    failure_ = failure;
    TellFailureLocked();
  }
  FailConnections(failure.status);
}

void Epoch::OnClosed() {
  MutexLock lock(&mutex_);
  ++closed_;
}

void Epoch::Abort(const absl::Status& cause) {
  CHECK(!cause.ok()) << "Abort needs a cause";
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(aborted_, true)) return;
    if (failure_.status.ok()) failure_.status = cause;
    failure = failure_.status;
  }
  FailConnections(failure);
  for (const auto& connection : connections_) connection->Cut();
}

absl::Status Epoch::Close(absl::Time deadline) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.status.ok()) return failure_.status;
  }
  for (const auto& connection : connections_) {
    CHECK(connection->options().role == EdgeRole::kSource ||
          connection->pending() == 0)
        << ToString(connection->options().edge)
        << ": closed with a receive pending";
    connection->SayGoodbye();  // After what was sent.
  }
  {
    MutexLock lock(&mutex_);
    const auto settled = [this] {
      mutex_.AssertHeld();
      return !failure_.status.ok() || closed_ == connections_.size();
    };
    if (mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
      return failure_.status;
    }
  }
  std::vector<std::string> silent;
  for (const auto& connection : connections_) {
    if (!connection->closed()) {
      silent.push_back(absl::StrCat(ToString(connection->options().edge), " (",
                                    connection->options().peer, ")"));
    }
  }
  return absl::DeadlineExceededError(
      absl::StrCat("no goodbye on ", absl::StrJoin(silent, ", ")));
}

}  // namespace penstock::server::transport::tcp
