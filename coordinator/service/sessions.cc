#include "coordinator/service/sessions.h"

#include <grpcpp/support/server_callback.h>

#include <map>
#include <utility>

#include "absl/status/status.h"
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

// One stage's stream: reads go to the core one at a time, writes are queued
// without a limit of their own: a stage that takes nothing loses its lease, and
// no step is sent beyond the window. Deletes itself in OnDone.
class SessionReactor final : public Stream,
                             public common::rpc::ClosableReactor {
 public:
  SessionReactor(GrpcSessions& sessions, SessionId id,
                 common::rpc::Admission::Ticket ticket)
      : sessions_(sessions), id_(id), ticket_(std::move(ticket)) {
    reads_.Release();
  }

  // Once the session is in the table of sessions.
  void Begin() {
    reads_.Release();
    StartRead(&incoming_);
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
  // Own synchronisation.
  common::sync::HappensBefore reads_;
  common::rpc::StreamWriter<v1::CoordinatorMessage> writer_{
      common::rpc::ServerWrites<v1::CoordinatorMessage>(*this)};
  // gRPC's while a read is under way; the read chain's.
  v1::StageMessage incoming_;
  bool said_hello_ = false;
};

class GrpcSessions final : public Sessions,
                           public v1::CoordinationService::CallbackService {
 public:
  GrpcSessions(CoreLoop& loop, Admissions& admissions,
               common::rpc::ReactorRegistry& reactors)
      : loop_(loop), admissions_(admissions), reactors_(reactors) {}

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

  Stream* StageSession(grpc::CallbackServerContext*) override {
    absl::StatusOr<common::rpc::Admission::Ticket> ticket =
        admissions_.sessions.Enter();
    if (!ticket.ok()) {
      return new common::rpc::RefusedStream<Stream>(ticket.status());
    }
    SessionReactor* reactor = nullptr;
    {
      MutexLock lock(&mutex_);
      reactor = new SessionReactor(*this, next_id_++, *std::move(ticket));
      open_[reactor->id()] = reactor;
    }
    if (reactors_.Add(reactor)) {
      reactor->Begin();
    } else {
      reactor->Close(
          absl::UnavailableError("the coordinator is shutting down"));
    }
    return reactor;
  }

  // A message of session `id`; `hello` for the first.
  void Deliver(SessionId id, v1::StageMessage message, bool first) {
    loop_.Post([id, first, message = std::move(message)](
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
    });
  }

  void Ended(SessionReactor* reactor) {
    const SessionId id = reactor->id();
    {
      MutexLock lock(&mutex_);
      open_.erase(id);
    }
    loop_.Post([id](dispatch::Core& core, const dispatch::Now& now,
                    dispatch::Actions& actions) {
      core.BreakSession(id, now, actions);
    });
    reactors_.Remove(reactor);
  }

 private:
  CoreLoop& loop_;
  Admissions& admissions_;
  common::rpc::ReactorRegistry& reactors_;

  common::sync::Mutex mutex_;
  SessionId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<SessionId, SessionReactor*> open_ ABSL_GUARDED_BY(mutex_);
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
  sessions_.Deliver(id_, std::move(incoming_), !said_hello_);
  said_hello_ = true;
  incoming_.Clear();
  reads_.Release();
  StartRead(&incoming_);
}

void SessionReactor::OnDone() {
  writer_.OnDone();
  reads_.Acquire();
  sessions_.Ended(this);
  delete this;
}

}  // namespace

std::unique_ptr<Sessions> Sessions::Create(
    CoreLoop& loop, Admissions& admissions,
    common::rpc::ReactorRegistry& reactors) {
  return std::make_unique<GrpcSessions>(loop, admissions, reactors);
}

}  // namespace penstock::coordinator::service
