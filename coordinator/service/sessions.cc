#include "coordinator/service/sessions.h"

#include <grpcpp/support/server_callback.h>

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/rpc/refused_stream.h"
#include "common/rpc/stream_writer.h"
#include "common/status/status_macros.h"
#include "common/sync/happens_before.h"
#include "common/sync/mutex.h"
#include "coordinator/service/unary.h"
#include "penstock/v1/coordination_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

using common::sync::MutexLock;
using dispatch::SessionId;

class GrpcSessions;

using Stream =
    grpc::ServerBidiReactor<v1::StageMessage, v1::CoordinatorMessage>;

// For a stream to say Hello, once it is in the way of another.
constexpr absl::Duration kHelloLimit = absl::Seconds(5);
// What may wait to be written, many times what a step and a lease bring: who
// has more takes nothing. Not ResourceExhausted: on that a stage gives up what
// it says.
constexpr size_t kLargestBacklog = 1024;

// One stage's stream. Reads go to the core one at a time: the next begins when
// the core has dealt with the last. Deletes itself in OnDone.
class SessionReactor final : public Stream,
                             public common::rpc::ClosableReactor {
 public:
  SessionReactor(GrpcSessions& sessions, SessionId id,
                 common::rpc::Admission::Ticket ticket,
                 grpc::CallbackServerContext& context)
      : sessions_(sessions),
        id_(id),
        ticket_(std::move(ticket)),
        context_(context) {
    reads_.Release();
  }

  // The first time once the session is in the table of sessions, then when what
  // was read is dealt with.
  void Read() {
    writer_.UnlessEnded([this] {
      reads_.Release();
      StartRead(&incoming_);
    });
  }

  SessionId id() const { return id_; }

  void Send(v1::CoordinatorMessage message) {
    writer_.Write(std::move(message));
  }
  void Close(const absl::Status& status) override { writer_.End(status); }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }
  void OnCancel() override { writer_.OnCancel(); }
  void OnDone() override;

 private:
  // Constant after construction.
  GrpcSessions& sessions_;
  const SessionId id_;
  const common::rpc::Admission::Ticket ticket_;
  grpc::CallbackServerContext& context_;  // gRPC's, until OnDone.
  // Own synchronisation.
  common::sync::HappensBefore reads_;
  common::rpc::StreamWriter<v1::CoordinatorMessage> writer_{
      common::rpc::ServerWrites<v1::CoordinatorMessage>(*this),
      {.messages = kLargestBacklog,
       .when_full = absl::CancelledError("the stage reads nothing"),
       .cut_off = [this] {
         LOG(WARNING) << "session " << id_ << " is ended: its stage reads "
                      << "nothing, and more than " << kLargestBacklog
                      << " messages to it are waiting";
         context_.TryCancel();
       }}};
  // gRPC's while a read is under way; the read chain's.
  v1::StageMessage incoming_;
  bool said_hello_ = false;
};

class GrpcSessions final : public Sessions,
                           public v1::CoordinationService::CallbackService {
 public:
  GrpcSessions(CoreLoop& loop, const common::time::Clock& clock,
               Admissions& admissions, common::rpc::ReactorRegistry& reactors)
      : loop_(loop),
        clock_(clock),
        admissions_(admissions),
        reactors_(reactors) {}

  grpc::Service* grpc_service() override { return this; }

  void Send(dispatch::SendToStage action) override {
    MutexLock lock(&mutex_);
    const auto it = open_.find(action.session);
    if (it != open_.end()) it->second->Send(std::move(action.message));
  }

  void Close(const dispatch::CloseSession& action) override {
    MutexLock lock(&mutex_);
    const auto it = open_.find(action.session);
    if (it != open_.end()) it->second->Close(action.status);
  }

  grpc::ServerUnaryReactor* RegisterStage(
      grpc::CallbackServerContext* context,
      const v1::RegisterStageRequest* request,
      v1::RegisterStageResponse* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions& actions) {
          auto response = core.RegisterStage(*request, now, actions);
          if (response.ok()) {
            LOG(INFO) << "stage " << request->stage_name() << " on host "
                      << request->host() << " registered";
          }
          return response;
        });
  }

  grpc::ServerUnaryReactor* ReportStageExit(
      grpc::CallbackServerContext* context,
      const v1::ReportStageExitRequest* request,
      v1::ReportStageExitResponse* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions& actions)
            -> absl::StatusOr<v1::ReportStageExitResponse> {
          RETURN_IF_ERROR(core.ReportStageExit(*request, now, actions));
          return v1::ReportStageExitResponse();
        });
  }

  Stream* StageSession(grpc::CallbackServerContext* context) override {
    absl::StatusOr<common::rpc::Admission::Ticket> ticket =
        admissions_.sessions.Enter();
    if (!ticket.ok()) {
      CloseSpeechless();
      return new common::rpc::RefusedStream<Stream>(ticket.status());
    }
    SessionReactor* reactor = nullptr;
    {
      MutexLock lock(&mutex_);
      reactor =
          new SessionReactor(*this, next_id_++, *std::move(ticket), *context);
      open_[reactor->id()] = reactor;
      speechless_[reactor->id()] = clock_.Monotonic();
    }
    if (reactors_.Add(reactor)) {
      reactor->Read();
    } else {
      reactor->Close(
          absl::UnavailableError("the coordinator is shutting down"));
    }
    return reactor;
  }

  // A message of session `id`; Hello for the first. Reads the next when it is
  // dealt with.
  void Deliver(SessionId id, v1::StageMessage message, bool first) {
    if (first) {
      MutexLock lock(&mutex_);
      speechless_.erase(id);
    }
    loop_.Post([this, id, first, message = std::move(message)](
                   dispatch::Core& core, const dispatch::Now& now,
                   dispatch::Actions& actions) {
      absl::Status status;
      if (!first) {
        status = core.Receive(id, message, now, actions);
      } else if (message.has_hello()) {
        status = core.OpenSession(id, message.hello(), now, actions);
      } else {
        status = absl::FailedPreconditionError(
            "a session begins with Hello; another message came first");
      }
      if (!status.ok()) {
        actions.push_back(
            dispatch::CloseSession{.session = id, .status = status});
      }
      MutexLock lock(&mutex_);
      if (const auto it = open_.find(id); it != open_.end()) {
        it->second->Read();
      }
    });
  }

  void Ended(SessionReactor* reactor) {
    const SessionId id = reactor->id();
    {
      MutexLock lock(&mutex_);
      open_.erase(id);
      speechless_.erase(id);
    }
    loop_.Post([id](dispatch::Core& core, const dispatch::Now& now,
                    dispatch::Actions& actions) {
      core.BreakSession(id, now, actions);
    });
    reactors_.Remove(reactor);
  }

 private:
  // Of those that have said nothing for too long: the next that comes finds
  // their place.
  void CloseSpeechless() {
    MutexLock lock(&mutex_);
    const common::time::MonotonicTime now = clock_.Monotonic();
    for (const auto& [id, since] : speechless_) {
      if (now - since < kHelloLimit) continue;
      open_[id]->Close(absl::DeadlineExceededError(
          absl::StrCat("no Hello within ", absl::FormatDuration(kHelloLimit),
                       ", and others wait for a session")));
    }
  }

  CoreLoop& loop_;
  const common::time::Clock& clock_;
  Admissions& admissions_;
  common::rpc::ReactorRegistry& reactors_;

  common::sync::Mutex mutex_;
  SessionId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<SessionId, SessionReactor*> open_ ABSL_GUARDED_BY(mutex_);
  // Those of them that have not said Hello, since when.
  std::map<SessionId, common::time::MonotonicTime> speechless_
      ABSL_GUARDED_BY(mutex_);
};

void SessionReactor::OnReadDone(bool ok) {
  reads_.Acquire();
  if (!ok) {
    // The stage has said all it will: nothing more to tell it either. What
    // cannot be parsed ends here too.
    writer_.End(said_hello_
                    ? absl::OkStatus()
                    : absl::FailedPreconditionError(
                          "a session begins with Hello; the stream ended, or "
                          "what came first is no message"));
    return;
  }
  const bool first = !said_hello_;
  said_hello_ = true;
  // By value: the next read can begin before Deliver() returns.
  v1::StageMessage message = std::move(incoming_);
  incoming_.Clear();
  sessions_.Deliver(id_, std::move(message), first);
}

void SessionReactor::OnDone() {
  writer_.OnDone();
  reads_.Acquire();
  sessions_.Ended(this);
  delete this;
}

}  // namespace

std::unique_ptr<Sessions> Sessions::Create(
    CoreLoop& loop, const common::time::Clock& clock, Admissions& admissions,
    common::rpc::ReactorRegistry& reactors) {
  return std::make_unique<GrpcSessions>(loop, clock, admissions, reactors);
}

}  // namespace penstock::coordinator::service
