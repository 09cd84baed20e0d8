// The thread that owns the coordinator's core: events in, actions out.
//
// gRPC handlers post what they decoded and finish their calls from the answer;
// nothing else touches the core. Actions are carried out in their order:
// messages go to stages (Sessions), files to a writer thread (JobFiles),
// news to watchers (JobFeed), probes and plans to threads of their own.
#ifndef PENSTOCK_COORDINATOR_SERVICE_CORE_LOOP_H_
#define PENSTOCK_COORDINATOR_SERVICE_CORE_LOOP_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/dispatch/core.h"

namespace penstock::coordinator::service {

// Where the core's actions go. Confined to the loop's thread; must not block.
class ActionSink {
 public:
  virtual ~ActionSink() = default;
  virtual void SendToStage(dispatch::SendToStage action) = 0;
  virtual void CloseSession(const dispatch::CloseSession& action) = 0;
  virtual void ProbeMonitor(const dispatch::ProbeMonitor& action) = 0;
  virtual void WriteJobFile(dispatch::WriteJobFile action) = 0;
  virtual void ChangeJobFolder(dispatch::ChangeJobFolder action) = 0;
  virtual void MakePlan(dispatch::MakePlan action) = 0;
  virtual void PublishJob(const dispatch::PublishJob& action) = 0;
  virtual void ForgetJob(const dispatch::ForgetJob& action) = 0;
};

// Thread-safe.
class CoreLoop {
 public:
  // Borrows all three for its life. Runs nothing before Start().
  CoreLoop(const common::time::Clock& clock, dispatch::Core& core,
           ActionSink& sink);
  ~CoreLoop() { Stop(); }

  void Start();
  // Runs what was posted, then joins. Nothing posted later runs.
  void Stop();

  // Runs `event` with the core on the loop's thread, then carries out the
  // actions that it appended.
  using Event =
      std::function<void(dispatch::Core& core, const dispatch::Now& now,
                         dispatch::Actions& actions)>;
  void Post(Event event);

 private:
  void Run();
  void Do(dispatch::Actions actions);

  // Constant after construction.
  const common::time::Clock& clock_;
  dispatch::Core& core_;
  ActionSink& sink_;

  common::sync::Mutex mutex_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_CORE_LOOP_H_
