// The data plane's loop thread: libuv, wrapped so that handles are owned values
// and other threads can only hand over functions.
//
// Everything that is handed to the loop runs on its thread, one at a time.
// Watches and timers are made, used and destroyed there.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_EVENT_LOOP_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_EVENT_LOOP_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace penstock::server::transport::tcp {

// Calls back while a file descriptor is ready (level-triggered), until it is
// destroyed; the descriptor must live longer. Confined to the loop thread; it
// may be destroyed by its own callback.
class Watch {
 public:
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Or-ed UV_READABLE, UV_WRITABLE.
  void SetEvents(int events);

 private:
  friend class EventLoop;
  struct State;
  explicit Watch(State* state) : state_(state) {}
  State* const state_;  // Freed by the loop once the handle is closed.
};

// Calls back once. Destroying it cancels. Confined to the loop thread; it may
// be destroyed by its own callback.
class Timer {
 public:
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  friend class EventLoop;
  struct State;
  explicit Timer(State* state) : state_(state) {}
  State* const state_;  // Freed by the loop once the handle is closed.
};

// Thread-safe, except for the methods that say otherwise.
class EventLoop {
 public:
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  // Runs what was handed over, then ends the thread. REQUIRES: not on the loop
  // thread; every watch and timer is destroyed.
  ~EventLoop();

  // Runs `function` on the loop thread, soon.
  void Run(std::function<void()> function);
  // The same, and waits until it has run. REQUIRES: not on the loop thread.
  void RunAndWait(const std::function<void()>& function);

  // On the loop thread only. `callback` gets the events that are there, all of
  // the asked ones after an error of the descriptor. Fails for descriptors that
  // cannot be polled.
  absl::StatusOr<std::unique_ptr<Watch>> WatchFd(
      int fd, int events, std::function<void(int events)> callback);
  std::unique_ptr<Timer> After(absl::Duration delay,
                               std::function<void()> callback);

 private:
  EventLoop() = default;
  void RunQueued();

  // Constant while the thread runs; used by it, wake_ also by uv_async_send.
  uv_loop_t loop_;
  uv_async_t wake_;
  std::thread thread_;

  common::sync::Mutex mutex_;
  std::vector<std::function<void()>> queued_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_EVENT_LOOP_H_
