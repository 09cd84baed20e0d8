#include "server/service/session_loop.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/time/proto_time.h"

namespace penstock::server::service {

SessionLoop::SessionLoop(const Options& options,
                         const common::time::Clock& clock,
                         CoordinatorLink& link,
                         std::function<void(const SessionEnd&)> on_end)
    : options_(options),
      clock_(clock),
      link_(link),
      on_end_(std::move(on_end)),
      core_({.stage_name = options.registration.stage_name(),
             .incarnation = options.registration.incarnation()}) {}

void SessionLoop::Join() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void SessionLoop::Start(JobRunner& runner) {
  CHECK(runner_ == nullptr) << "started twice";
  runner_ = &runner;
  Post(StartEvent{});
  thread_ = std::thread([this] { Run(); });
}

void SessionLoop::Report(int64_t epoch, v1::StageMessage message) {
  Post(JobEvent{.epoch = epoch, .message = std::move(message)});
}

void SessionLoop::Stop() { Post(StopEvent{}); }

void SessionLoop::Describe(v1::StageStatus& status) const {
  common::sync::MutexLock lock(&mutex_);
  status.MergeFrom(status_);
}

void SessionLoop::Post(SessionEvent event) {
  common::sync::MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

void SessionLoop::Run() {
  while (!ended_) {
    SessionEvent event = TickEvent{};
    {
      common::sync::MutexLock lock(&mutex_);
      const auto any = [this] {
        mutex_.AssertHeld();
        return !events_.empty();
      };
      const absl::Duration wait = core_.next_tick() - clock_.Monotonic();
      if (mutex_.AwaitWithTimeout(absl::Condition(&any), wait)) {
        event = std::move(events_.front());
        events_.pop_front();
      }
    }
    Tell(event);
    const SessionState before = core_.state();
    for (SessionAction& action :
         core_.Handle(std::move(event), clock_.Monotonic())) {
      Do(std::move(action));
    }
    if (core_.state() != before && core_.state() == SessionState::kConnected) {
      failures_.Forget();
      LOG(INFO) << "the session with the coordinator stands, term "
                << core_.term();
    }
    Publish();
  }
}

void SessionLoop::Tell(const SessionEvent& event) {
  const char* what = nullptr;
  absl::Status status;
  if (const auto* registered = std::get_if<RegisteredEvent>(&event)) {
    if (registered->response.ok()) return;
    what = "registration: ";
    status = registered->response.status();
  } else if (const auto* broken = std::get_if<StreamBrokenEvent>(&event)) {
    what = "session with the coordinator: ";
    status = broken->status;
  } else {
    return;
  }
  const auto line =
      failures_.Next(absl::StrCat(what, status.raw_code()),
                     absl::StrCat(what, status.ok() ? "the coordinator ended it"
                                                    : status.ToString()),
                     clock_.Monotonic());
  if (line.has_value()) LOG(WARNING) << *line;
}

void SessionLoop::Publish() {
  common::sync::MutexLock lock(&mutex_);
  status_.set_term(core_.term());
  status_.set_epoch(core_.epoch());
  status_.set_stale_messages(core_.stale_messages());
  status_.set_coordinator_connected(core_.state() == SessionState::kConnected);
}

void SessionLoop::Do(SessionAction action) {
  struct Visitor {
    SessionLoop& loop;

    void operator()(const RegisterAction&) {
      loop.link_.Register(
          loop.options_.registration, loop.options_.register_timeout,
          [&loop = loop](absl::StatusOr<v1::RegisterStageResponse> response) {
            loop.Post(RegisteredEvent{std::move(response)});
          });
    }
    void operator()(OpenStreamAction& open) {
      const int64_t number = ++loop.stream_;
      {
        common::sync::MutexLock lock(&loop.mutex_);
        loop.open_stream_ = number;
      }
      const auto current = [&loop = loop, number] {
        common::sync::MutexLock lock(&loop.mutex_);
        return loop.open_stream_ == number;
      };
      loop.link_.OpenStream(
          open.hello,
          {.on_message =
               [&loop = loop, current](v1::CoordinatorMessage message) {
                 if (!current()) return;
                 loop.Post(MessageEvent{.message = std::move(message),
                                        .came = loop.clock_.Monotonic()});
               },
           .on_broken =
               [&loop = loop, current](absl::Status status) {
                 if (current()) loop.Post(StreamBrokenEvent{std::move(status)});
               }});
    }
    void operator()(const CloseStreamAction& close) {
      if (!close.status.ok()) {
        const auto line = loop.failures_.Next(
            absl::StrCat("closed: ", close.status.raw_code()),
            close.status.ToString(), loop.clock_.Monotonic());
        if (line.has_value()) LOG(ERROR) << *line;
      } else {
        // We end: that the stream does too is no news.
        common::sync::MutexLock lock(&loop.mutex_);
        loop.open_stream_ = 0;
      }
      loop.link_.CloseStream();
    }
    void operator()(const CancelStreamAction& cancel) {
      {
        // What it still says, its end too, is that of an old stream.
        common::sync::MutexLock lock(&loop.mutex_);
        loop.open_stream_ = 0;
      }
      const auto line = loop.failures_.Next(
          absl::StrCat("cancelled: ", cancel.status.raw_code()),
          cancel.status.ToString(), loop.clock_.Monotonic());
      if (line.has_value()) LOG(WARNING) << *line;
      loop.link_.CancelStream();
    }
    void operator()(SendAction& send) {
      loop.link_.Send(std::move(send.message));
    }
    void operator()(const HeartbeatAction&) {
      v1::StageMessage message;
      *message.mutable_heartbeat() = loop.runner_->heartbeat();
      *message.mutable_heartbeat()->mutable_wall_time() =
          common::time::ToProto(loop.clock_.Now());
      loop.link_.Send(std::move(message));
    }
    void operator()(CheckInputsAction& check) {
      loop.runner_->CheckInputs(check.epoch, std::move(check.request));
    }
    void operator()(ProbeOutputAction& probe) {
      loop.runner_->ProbeOutput(probe.epoch, std::move(probe.request));
    }
    void operator()(AssembleAction& assemble) {
      loop.runner_->Assemble(assemble.epoch, std::move(assemble.assignment));
    }
    void operator()(RunAction& run) {
      const int64_t epoch = run.epoch;
      loop.runner_->Run(epoch, std::move(run));
    }
    void operator()(const AbortAction& abort) {
      if (abort.cause.ok()) {
        LOG(INFO) << "epoch " << abort.epoch << ": the job is over";
      } else if (absl::IsCancelled(abort.cause)) {  // Somebody's wish.
        LOG(INFO) << "epoch " << abort.epoch << ": " << abort.cause.message();
      } else {
        LOG(WARNING) << "epoch " << abort.epoch << ": " << abort.cause;
      }
      loop.runner_->Abort(abort);
    }
    void operator()(const EndAction& end) {
      loop.ended_ = true;
      loop.on_end_({.exit_code = end.exit_code, .status = end.status});
    }
  };
  std::visit(Visitor{*this}, action);
}

}  // namespace penstock::server::service
