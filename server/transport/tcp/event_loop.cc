#include "server/transport/tcp/event_loop.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "server/transport/tcp/socket.h"

namespace penstock::server::transport::tcp {
namespace {

// On Unix libuv's errors are the kernel's, negated.
absl::Status UvError(absl::string_view what, int error) {
  return SocketError(what, -error);
}

}  // namespace

struct Watch::State {
  uv_poll_t handle;
  std::function<void(int)> callback;
  int asked = 0;

  static void OnEvents(uv_poll_t* handle, int status, int events) {
    auto* state = static_cast<State*>(handle->data);
    const int seen = status < 0 ? state->asked : events;
    // The callback may destroy the watch, and with it this function.
    const std::function<void(int)> callback = state->callback;
    callback(seen);
  }
};

Watch::~Watch() {
  uv_poll_stop(&state_->handle);
  uv_close(
      reinterpret_cast<uv_handle_t*>(&state_->handle),
      [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

void Watch::SetEvents(int events) {
  state_->asked = events;
  CHECK_EQ(uv_poll_start(&state_->handle, events, &State::OnEvents), 0);
}

struct Timer::State {
  uv_timer_t handle;
  std::function<void()> callback;

  static void OnTime(uv_timer_t* handle) {
    const std::function<void()> callback =
        std::move(static_cast<State*>(handle->data)->callback);
    callback();
  }
};

Timer::~Timer() {
  uv_close(
      reinterpret_cast<uv_handle_t*>(&state_->handle),
      [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  std::unique_ptr<EventLoop> loop(new EventLoop());
  if (const int error = uv_loop_init(&loop->loop_); error != 0) {
    return UvError("event loop", error);
  }
  const int error =
      uv_async_init(&loop->loop_, &loop->wake_, [](uv_async_t* wake) {
        static_cast<EventLoop*>(wake->data)->RunQueued();
      });
  if (error != 0) {
    uv_loop_close(&loop->loop_);
    return UvError("event loop", error);
  }
  loop->wake_.data = loop.get();
  loop->thread_ = std::thread([loop = loop.get()] {
    pthread_setname_np(pthread_self(), "transport");
    uv_run(&loop->loop_, UV_RUN_DEFAULT);
  });
  return loop;
}

EventLoop::~EventLoop() {
  if (!thread_.joinable()) return;  // Create() failed.
  // With its last handle closed the loop runs out of work and ends.
  Run([this] { uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr); });
  thread_.join();
  const int left = uv_loop_close(&loop_);
  CHECK_EQ(left, 0) << "watches or timers are left: " << uv_strerror(left);
}

void EventLoop::Run(std::function<void()> function) {
  bool first;
  {
    common::sync::MutexLock lock(&mutex_);
    first = queued_.empty();
    queued_.push_back(std::move(function));
  }
  // Later ones are seen by the wake of the first.
  if (first) uv_async_send(&wake_);
}

void EventLoop::RunAndWait(const std::function<void()>& function) {
  common::sync::Notification done;
  Run([&function, &done] {
    function();
    done.Notify();
  });
  done.WaitForNotification();
}

void EventLoop::RunQueued() {
  std::vector<std::function<void()>> functions;
  {
    common::sync::MutexLock lock(&mutex_);
    functions.swap(queued_);
  }
  for (const auto& function : functions) function();
}

absl::StatusOr<std::unique_ptr<Watch>> EventLoop::WatchFd(
    int fd, int events, std::function<void(int)> callback) {
  auto* state = new Watch::State;
  if (const int error = uv_poll_init(&loop_, &state->handle, fd); error != 0) {
    delete state;
    return UvError("poll", error);
  }
  state->handle.data = state;
  state->callback = std::move(callback);
  std::unique_ptr<Watch> watch(new Watch(state));
  watch->SetEvents(events);
  return watch;
}

std::unique_ptr<Timer> EventLoop::After(absl::Duration delay,
                                        std::function<void()> callback) {
  auto* state = new Timer::State;
  CHECK_EQ(uv_timer_init(&loop_, &state->handle), 0);
  state->handle.data = state;
  state->callback = std::move(callback);
  // Relative to now, not to when this round of the loop began.
  uv_update_time(&loop_);
  CHECK_EQ(uv_timer_start(&state->handle, &Timer::State::OnTime,
                          absl::ToInt64Milliseconds(
                              absl::Ceil(delay, absl::Milliseconds(1))),
                          0),
           0);
  return std::unique_ptr<Timer>(new Timer(state));
}

}  // namespace penstock::server::transport::tcp
