#include "server/transport/tcp/mover.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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
// A thread that acknowledges at once has nothing else to do than to come again.
// Only what is posted waits as long, while the peer has slots left.
constexpr int64_t kImmediateGraceNs = 20'000'000;
// Drives within one timer period that make an exchange rapid.
constexpr uint64_t kRapidDrives = 4;

// Numbers in the sets, beside those of the connections.
constexpr uint32_t kWake = UINT32_MAX;
constexpr uint32_t kTimer = UINT32_MAX - 1;
constexpr uint32_t kSockets = UINT32_MAX - 2;

constexpr int kEventsARound = 16;

// Waits for events of the set `set`, `left` at most, to the nanosecond, and
// returns how many there are.
int AwaitEvents(const Fd& set, epoll_event* events, absl::Duration left) {
  if (left == absl::InfiniteDuration()) {
    return epoll_wait(set.get(), events, kEventsARound, -1);
  }
  pollfd polled{.fd = set.get(), .events = POLLIN};
  const timespec timeout = absl::ToTimespec(left);
  if (ppoll(&polled, 1, &timeout, nullptr) <= 0) return 0;
  return epoll_wait(set.get(), events, kEventsARound, 0);
}

// The event of `fd` in the set `set` is the number `data`.
absl::Status Watch(const Fd& set, const Fd& fd, uint32_t data) {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = data}};
  if (epoll_ctl(set.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return SocketError("epoll_ctl", errno);
  }
  return absl::OkStatus();
}

}  // namespace

Mover::Mover(const std::vector<std::unique_ptr<Connection>>& connections,
             const common::time::Clock& clock, Acks acks)
    : connections_(connections),
      clock_(clock),
      acks_(acks),
      least_grace_ns_(acks == Acks::kImmediate ? kImmediateGraceNs
                                               : kLeastGraceNs),
      grace_ns_(least_grace_ns_) {}

absl::Status Mover::Open() {
  sockets_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  gate_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer_ = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  for (const Fd* fd : {&sockets_, &gate_, &wake_, &timer_}) {
    if (!fd->open()) {
      return SocketError("no descriptors for the data plane", errno);
    }
  }
  RETURN_IF_ERROR(Watch(sockets_, wake_, kWake));
  RETURN_IF_ERROR(Watch(gate_, timer_, kTimer));
  return Watch(gate_, sockets_, kSockets);
}

void Mover::ShowSocketsToLoopLocked(bool shown) {
  epoll_event event{.events = shown ? EPOLLIN : 0u, .data = {.u32 = kSockets}};
  CHECK_EQ(epoll_ctl(gate_.get(), EPOLL_CTL_MOD, sockets_.get(), &event), 0);
}

void Mover::EndGraceLocked() {
  state_ = State::kLoop;
  ShowSocketsToLoopLocked(true);
}

void Mover::StepAside() {
  MutexLock lock(&mutex_);
  if (state_ == State::kGrace) EndGraceLocked();
}

void Mover::SetTimerLocked() {
  const itimerspec spec{.it_value = {.tv_sec = 0, .tv_nsec = grace_ns_}};
  CHECK_EQ(timerfd_settime(timer_.get(), 0, &spec, nullptr), 0);
  timer_runs_ = true;
  drives_at_timer_ = drives_;
}

std::vector<uint32_t> Mover::OnTimerLocked() {
  timer_runs_ = false;
  std::vector<uint32_t> owing;
  owing.swap(owing_);
  const bool rapid = drives_ >= drives_at_timer_ + kRapidDrives;
  grace_ns_ =
      rapid ? std::max(least_grace_ns_, std::min(2 * grace_ns_, kMostGraceNs))
            : least_grace_ns_;
  if (state_ == State::kGrace) {
    if (drives_ == drives_at_timer_) {
      EndGraceLocked();
    } else {
      SetTimerLocked();
    }
  }
  return owing;
}

bool Mover::OnReadable() {
  std::vector<uint32_t> owing;
  {
    MutexLock lock(&mutex_);
    uint64_t expirations;
    if (read(timer_.get(), &expirations, sizeof(expirations)) > 0) {
      owing = OnTimerLocked();
    }
  }
  for (const uint32_t index : owing) connections_[index]->Flush();
  epoll_event events[kEventsARound];
  int count = 0;
  common::time::MonotonicTime since;
  for (int i = 0; i <= count; ++i) {
    MutexLock lock(&mutex_);
    if (state_ != State::kLoop) return true;
    if (i == 0) {
      count = epoll_wait(sockets_.get(), events, kEventsARound, 0);
      since = clock_.Monotonic();
    }
    if (i >= count) return true;
    if (events[i].data.u32 == kWake) return false;
    connections_[events[i].data.u32]->OnEvents(Acks::kImmediate, since);
  }
  return true;
}

absl::Duration Mover::Drive(const device::HostEvent& event,
                            absl::Duration timeout) {
  const auto deadline = timeout == absl::InfiniteDuration()
                            ? common::time::MonotonicTime::Infinite()
                            : clock_.Monotonic() + timeout;
  {
    MutexLock lock(&mutex_);
    if (state_ == State::kDriver) return timeout;
    if (state_ == State::kLoop) ShowSocketsToLoopLocked(false);
    state_ = State::kDriver;
  }
  bool stopped = false;
  while (!stopped && !event.Done()) {
    const absl::Duration left = deadline - clock_.Monotonic();
    if (left <= absl::ZeroDuration()) break;
    epoll_event events[kEventsARound];
    const int count = AwaitEvents(sockets_, events, left);
    const common::time::MonotonicTime since = clock_.Monotonic();
    for (int i = 0; i < count; ++i) {
      const uint32_t index = events[i].data.u32;
      if (index == kWake) {
        stopped = true;  // Who failed the epoch completes the event.
      } else if (connections_[index]->OnEvents(acks_, since)) {
        MutexLock lock(&mutex_);
        OweLocked(index);
      }
    }
  }
  {
    MutexLock lock(&mutex_);
    state_ = State::kGrace;
    ++drives_;
    if (!timer_runs_) SetTimerLocked();
  }
  return timeout == absl::InfiniteDuration() ? timeout
                                             : deadline - clock_.Monotonic();
}

void Mover::OweLocked(uint32_t index) {
  if (owing_.empty() || owing_.back() != index) owing_.push_back(index);
  if (!timer_runs_) SetTimerLocked();
}

void Mover::Owes(Connection& connection) {
  {
    MutexLock lock(&mutex_);
    if (state_ != State::kLoop) return OweLocked(connection.index());
  }
  connection.Flush();
}

void Mover::Stop() { CHECK_EQ(eventfd_write(wake_.get(), 1), 0); }

}  // namespace penstock::server::transport::tcp
