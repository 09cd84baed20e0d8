#include "server/service/monitor_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/admission.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/refused_stream.h"
#include "common/rpc/rpc_server.h"
#include "common/rpc/stream_writer.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "penstock/v1/stage_monitor_service.grpc.pb.h"

namespace penstock::server::service {
namespace {

using common::sync::MutexLock;
using common::time::MonotonicTime;

constexpr absl::Duration kLongestSilence = absl::Seconds(10);

// A look at the stage, and when on a counter of such moments: one whose `begun`
// is above another's `ended` is the later one.
struct Snapshot {
  int64_t begun = 0;
  int64_t ended = 0;
  v1::StageStatus status;
};

// One WatchStage stream: keeps only the newest status, so a slow reader costs
// no memory. Deletes itself in OnDone.
class WatchReactor final : public grpc::ServerWriteReactor<v1::StageStatus>,
                           public common::rpc::ClosableReactor {
 public:
  WatchReactor(common::rpc::Admission::Ticket ticket,
               std::function<void(WatchReactor*)> on_done)
      : ticket_(std::move(ticket)), on_done_(std::move(on_done)) {}

  void Offer(const Snapshot& snapshot, MonotonicTime now) {
    MutexLock lock(&mutex_);
    // What two threads looked at meanwhile has no order: the one that is late
    // with it may hold the older. The next look says what there is to say.
    if (snapshot.begun <= seen_) return;
    seen_ = snapshot.ended;
    const v1::StageStatus& status = snapshot.status;
    std::string bytes = status.SerializeAsString();
    if (bytes == last_bytes_ && now - last_offer_ < kLongestSilence) return;
    last_bytes_ = std::move(bytes);
    last_offer_ = now;
    writer_.Write(status);
  }

  void Close(const absl::Status& status) override { writer_.End(status); }
  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }
  void OnCancel() override { writer_.OnCancel(); }
  void OnDone() override {
    writer_.OnDone();
    on_done_(this);
    delete this;
  }

 private:
  const common::rpc::Admission::Ticket ticket_;
  const std::function<void(WatchReactor*)> on_done_;
  common::rpc::StreamWriter<v1::StageStatus> writer_{
      common::rpc::ServerWrites<v1::StageStatus>(*this), {.messages = 1}};

  common::sync::Mutex mutex_;
  int64_t seen_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_bytes_ ABSL_GUARDED_BY(mutex_);
  MonotonicTime last_offer_ ABSL_GUARDED_BY(mutex_);
};

class GrpcMonitorServer final
    : public MonitorServer,
      public v1::StageMonitorService::CallbackService {
 public:
  GrpcMonitorServer(const Options& options, const common::time::Clock& clock)
      : options_(options),
        clock_(clock),
        admission_("WatchStage streams", options.watches,
                   "end one of them, or ask with GetStage") {}

  absl::Status Listen() {
    ASSIGN_OR_RETURN(server_, common::rpc::RpcServer::Start(options_.address,
                                                            {this}, reactors_));
    return absl::OkStatus();
  }

  ~GrpcMonitorServer() override { server_.reset(); }

  const common::rpc::Address& address() const override {
    return server_->address();
  }
  void SetReady(bool ready) override {
    server_->SetServing("readiness", ready);
  }
  void Publish() override {
    const Snapshot snapshot = Look();
    const MonotonicTime now = clock_.Monotonic();
    MutexLock lock(&mutex_);
    for (WatchReactor* watcher : watchers_) watcher->Offer(snapshot, now);
  }

  grpc::ServerUnaryReactor* GetStage(grpc::CallbackServerContext* context,
                                     const v1::GetStageStatusRequest*,
                                     v1::StageStatus* response) override {
    *response = options_.status();
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<v1::StageStatus>* WatchStage(
      grpc::CallbackServerContext*, const v1::WatchStageRequest*) override {
    absl::StatusOr<common::rpc::Admission::Ticket> ticket = admission_.Enter();
    if (!ticket.ok()) {
      return new common::rpc::RefusedStream<
          grpc::ServerWriteReactor<v1::StageStatus>>(ticket.status());
    }
    auto* watcher =
        new WatchReactor(*std::move(ticket), [this](WatchReactor* done) {
          {
            MutexLock lock(&mutex_);
            watchers_.erase(done);
          }
          reactors_.Remove(done);
        });
    if (!reactors_.Add(watcher)) {
      watcher->Close(absl::UnavailableError("the stage is shutting down"));
      return watcher;
    }
    const Snapshot snapshot = Look();
    const MonotonicTime now = clock_.Monotonic();
    MutexLock lock(&mutex_);
    watchers_.insert(watcher);
    watcher->Offer(snapshot, now);
    return watcher;
  }

 private:
  Snapshot Look() {
    Snapshot snapshot = {.begun = ++moments_};
    snapshot.status = options_.status();
    snapshot.ended = ++moments_;
    return snapshot;
  }

  // Constant after construction.
  const Options options_;
  const common::time::Clock& clock_;
  // Own synchronisation.
  common::rpc::Admission admission_;
  common::rpc::ReactorRegistry reactors_;
  std::atomic<int64_t> moments_{0};

  common::sync::Mutex mutex_;
  std::set<WatchReactor*> watchers_ ABSL_GUARDED_BY(mutex_);

  // Last: nothing calls in once it is gone.
  std::unique_ptr<common::rpc::RpcServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MonitorServer>> MonitorServer::Start(
    const Options& options, const common::time::Clock& clock) {
  auto server = std::make_unique<GrpcMonitorServer>(options, clock);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace penstock::server::service
