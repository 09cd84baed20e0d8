// Carries a SessionCore's actions out: one thread, a queue of events.
#ifndef PENSTOCK_SERVER_SERVICE_SESSION_LOOP_H_
#define PENSTOCK_SERVER_SERVICE_SESSION_LOOP_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/stage_monitor_service.pb.h"
#include "server/service/coordinator_link.h"
#include "server/service/job_runner.h"
#include "server/service/repeated_lines.h"
#include "server/service/session_core.h"

namespace penstock::server::service {

// Why the daemon ends.
struct SessionEnd {
  int exit_code = 0;
  absl::Status status;
};

// Thread-safe.
class SessionLoop {
 public:
  struct Options {
    v1::RegisterStageRequest registration;
    absl::Duration register_timeout = absl::Seconds(5);
  };

  // Borrows all three. `on_end` is called once, on the loop's thread.
  SessionLoop(const Options& options, const common::time::Clock& clock,
              CoordinatorLink& link,
              std::function<void(const SessionEnd&)> on_end);
  ~SessionLoop() { Join(); }

  // Starts registering. `runner` must outlive the loop's thread; its report
  // function is Report(). Once.
  void Start(JobRunner& runner);

  // For the runner: a message of the job.
  void Report(int64_t epoch, v1::StageMessage message);

  // SIGTERM: tells the coordinator, and ends with exit code 0.
  void Stop();

  // Stop(), then waits for the loop's thread: the runner is called no more.
  // What is reported later goes nowhere.
  void Join();

  // Fills what the session knows of the status.
  void Describe(v1::StageStatus& status) const;

 private:
  void Post(SessionEvent event);
  void Run();
  // Logs an event that is a failure.
  void Tell(const SessionEvent& event);
  void Do(SessionAction action);
  void Publish();

  // Constant after construction.
  const Options options_;
  const common::time::Clock& clock_;
  CoordinatorLink& link_;
  const std::function<void(const SessionEnd&)> on_end_;
  JobRunner* runner_ = nullptr;  // Set by Start().

  // Confined to the loop's thread.
  SessionCore core_;
  bool ended_ = false;
  RepeatedLines failures_;  // Of tries to have a session.
  // Streams are numbered: what an old one still says is ignored.
  int64_t stream_ = 0;

  mutable common::sync::Mutex mutex_;
  std::deque<SessionEvent> events_ ABSL_GUARDED_BY(mutex_);
  v1::StageStatus status_ ABSL_GUARDED_BY(mutex_);
  int64_t open_stream_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_SESSION_LOOP_H_
