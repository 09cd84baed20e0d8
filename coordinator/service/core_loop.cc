#include "coordinator/service/core_loop.h"

#include <utility>
#include <variant>

namespace penstock::coordinator::service {

CoreLoop::CoreLoop(const common::time::Clock& clock, dispatch::Core& core,
                   ActionSink& sink)
    : clock_(clock), core_(core), sink_(sink) {}

void CoreLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void CoreLoop::Stop() {
  {
    common::sync::MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void CoreLoop::Post(Event event) {
  common::sync::MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

void CoreLoop::Run() {
  while (true) {
    Event event;
    {
      common::sync::MutexLock lock(&mutex_);
      const auto any = [this] {
        mutex_.AssertHeld();
        return ending_ || !events_.empty();
      };
      mutex_.AwaitWithTimeout(absl::Condition(&any),
                              core_.NextTick() - clock_.Monotonic());
      if (!events_.empty()) {
        event = std::move(events_.front());
        events_.pop_front();
      } else if (ending_) {
        return;
      }
    }
    const dispatch::Now now{.monotonic = clock_.Monotonic(),
                            .wall = clock_.Now()};
    dispatch::Actions actions;
    // Before the event: after a pause of this process the core must know of it.
    if (core_.NextTick() <= now.monotonic) core_.Tick(now, actions);
    if (event != nullptr) event(core_, now, actions);
    if (core_.NextTick() <= now.monotonic) core_.Tick(now, actions);
    Do(std::move(actions));
  }
}

void CoreLoop::Do(dispatch::Actions actions) {
  struct Visitor {
    ActionSink& sink;
    void operator()(dispatch::SendToStage& action) {
      sink.SendToStage(std::move(action));
    }
    void operator()(const dispatch::CloseSession& action) {
      sink.CloseSession(action);
    }
    void operator()(const dispatch::ProbeMonitor& action) {
      sink.ProbeMonitor(action);
    }
    void operator()(dispatch::WriteJobFile& action) {
      sink.WriteJobFile(std::move(action));
    }
    void operator()(dispatch::ChangeJobFolder& action) {
      sink.ChangeJobFolder(std::move(action));
    }
    void operator()(dispatch::MakePlan& action) {
      sink.MakePlan(std::move(action));
    }
    void operator()(const dispatch::PublishJob& action) {
      sink.PublishJob(action);
    }
    void operator()(const dispatch::ForgetJob& action) {
      sink.ForgetJob(action);
    }
  };
  for (dispatch::Action& action : actions) {
    std::visit(Visitor{sink_}, action);
  }
}

}  // namespace penstock::coordinator::service
