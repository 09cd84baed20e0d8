#include "server/transport/tcp/epoch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::transport::tcp {

using common::sync::MutexLock;

namespace {

// Long enough for a thread that handles a message and waits for the next one;
// so long a peer may wait for word of what was received. In the midst of a
// rapid exchange the timer would disturb more than it helps: it doubles then.
constexpr int64_t kLeastGraceNs = 200'000;
constexpr int64_t kMostGraceNs = 1'600'000;
// Drives within one timer period that make an exchange rapid.
constexpr uint64_t kRapidDrives = 4;

// Numbers in the sets, beside those of the connections.
constexpr uint32_t kWake = UINT32_MAX;
constexpr uint32_t kTimer = UINT32_MAX - 1;
constexpr uint32_t kSockets = UINT32_MAX - 2;

constexpr int kEventsARound = 16;

// Milliseconds to a deadline, rounded up, at most an hour; -1: for ever.
int MillisecondsTo(absl::Time deadline, const common::time::Clock& clock) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left =
      std::clamp(deadline - clock.Now(), absl::ZeroDuration(),
                 absl::Duration(absl::Hours(1)));
  return static_cast<int>(
      absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Epoch>> Epoch::Create(
    const TransportOptions& options, EventLoop& loop,
    const common::time::Clock& clock) {
  std::shared_ptr<Epoch> epoch(new Epoch(options, loop, clock));
  RETURN_IF_ERROR(epoch->OpenDescriptors());
  for (const EdgeOptions& edge : options.edges) {
    epoch->connections_.push_back(std::make_unique<Connection>(
        edge, Connection::Deps{
                  .owner = *epoch,
                  .epoll_fd = epoch->sockets_.get(),
                  .index = static_cast<uint32_t>(epoch->connections_.size())}));
  }
  return epoch;
}

Epoch::Epoch(const TransportOptions& options, EventLoop& loop,
             const common::time::Clock& clock)
    : options_(options), loop_(loop), clock_(clock), grace_ns_(kLeastGraceNs) {}

absl::Status Epoch::OpenDescriptors() {
  sockets_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  gate_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  for (const Fd* fd : {&sockets_, &gate_, &wake_, &timer_}) {
    if (!fd->open()) {
      return absl::ResourceExhaustedError(
          SocketError("no descriptors for the data plane", errno).message());
    }
  }
  RETURN_IF_ERROR(Watch(sockets_, wake_, kWake));
  RETURN_IF_ERROR(Watch(gate_, timer_, kTimer));
  return Watch(gate_, sockets_, kSockets);
}

absl::Status Epoch::Watch(const Fd& set, const Fd& fd, uint32_t data) {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = data}};
  if (epoll_ctl(set.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return absl::ResourceExhaustedError(
        SocketError("epoll_ctl", errno).message());
  }
  return absl::OkStatus();
}

void Epoch::ShowSocketsToLoop(bool shown) {
  epoll_event event{.events = shown ? EPOLLIN : 0u, .data = {.u32 = kSockets}};
  CHECK_EQ(epoll_ctl(gate_.get(), EPOLL_CTL_MOD, sockets_.get(), &event), 0);
}

void Epoch::SetTimer() {
  const itimerspec spec{.it_value = {.tv_sec = 0, .tv_nsec = grace_ns_}};
  CHECK_EQ(timerfd_settime(timer_.get(), 0, &spec, nullptr), 0);
  timer_runs_ = true;
  drives_at_timer_ = drives_;
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

bool Epoch::OnReadable() {
  if (!status().ok()) return false;
  std::vector<uint32_t> owing;
  {
    MutexLock lock(&move_mutex_);
    uint64_t expirations;
    if (read(timer_.get(), &expirations, sizeof(expirations)) > 0) {
      timer_runs_ = false;
      owing.swap(owing_);
      const bool rapid = drives_ >= drives_at_timer_ + kRapidDrives;
      grace_ns_ = rapid ? std::min(2 * grace_ns_, kMostGraceNs) : kLeastGraceNs;
      if (mover_ == Mover::kGrace) {
        if (drives_ == drives_at_timer_) {
          mover_ = Mover::kLoop;
          ShowSocketsToLoop(true);
        } else {
          SetTimer();
        }
      }
    }
  }
  FlushOwing(owing);
  epoll_event events[kEventsARound];
  int count = 0;
  for (int i = 0; i <= count; ++i) {
    MutexLock lock(&move_mutex_);
    if (mover_ != Mover::kLoop) return true;
    if (i == 0) count = epoll_wait(sockets_.get(), events, kEventsARound, 0);
    if (i >= count) return true;
    if (events[i].data.u32 == kWake) return false;
    connections_[events[i].data.u32]->OnEvents(Connection::Words::kAtOnce);
  }
  return true;
}

void Epoch::FlushOwing(const std::vector<uint32_t>& owing) {
  for (const uint32_t index : owing) connections_[index]->Flush();
}

void Epoch::Drive(const device::HostEvent& event, absl::Time deadline) {
  {
    MutexLock lock(&move_mutex_);
    if (mover_ == Mover::kDriver) return;
    if (mover_ == Mover::kLoop) ShowSocketsToLoop(false);
    mover_ = Mover::kDriver;
  }
  bool failed = false;
  while (!failed && !event.Done()) {
    const int timeout = MillisecondsTo(deadline, clock_);
    if (timeout == 0) break;
    epoll_event events[kEventsARound];
    const int count =
        epoll_wait(sockets_.get(), events, kEventsARound, timeout);
    for (int i = 0; i < count; ++i) {
      const uint32_t index = events[i].data.u32;
      if (index == kWake) {
        failed = true;  // Whoever failed the epoch completes the event.
      } else if (connections_[index]->OnEvents(Connection::Words::kDefer)) {
        MutexLock lock(&move_mutex_);
        OweLocked(index);
      }
    }
  }
  MutexLock lock(&move_mutex_);
  mover_ = Mover::kGrace;
  ++drives_;
  if (!timer_runs_) SetTimer();
}

void Epoch::OweLocked(uint32_t index) {
  if (owing_.empty() || owing_.back() != index) owing_.push_back(index);
  if (!timer_runs_) SetTimer();
}

void Epoch::Ready(Connection& connection,
                  const std::shared_ptr<Operation>& operation,
                  const absl::Status& stream) {
  if (!connection.Ready(operation, stream, Connection::Words::kDefer)) return;
  {
    MutexLock lock(&move_mutex_);
    if (mover_ != Mover::kLoop) return OweLocked(connection.index());
  }
  connection.Flush();
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
}

void Epoch::FailConnections(const absl::Status& failure) {
  CHECK_EQ(eventfd_write(wake_.get(), 1), 0);
  for (const auto& connection : connections_) connection->Fail(failure);
}

void Epoch::OnBroken(const Failure& failure) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.status.ok()) return;
    failure_ = failure;
    // On the loop thread, which the transport's destructor waits for.
    if (on_failure_) {
      loop_.Run([callback = on_failure_, failure] { callback(failure); });
    }
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
    CHECK_EQ(connection->pending(), 0u) << ToString(connection->options().edge)
                                        << ": closed with messages pending";
    connection->SayGoodbye();
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
