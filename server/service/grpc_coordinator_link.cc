#include "server/service/grpc_coordinator_link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/log/log.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/stream_writer.h"
#include "common/sync/happens_before.h"
#include "common/sync/mutex.h"
#include "penstock/v1/coordination_service.grpc.pb.h"

namespace penstock::server::service {
namespace {

using common::sync::HappensBefore;
using common::sync::Mutex;
using common::sync::MutexLock;
using common::sync::Notification;

constexpr absl::Duration kCloseTimeout = absl::Seconds(1);

// One stream: one write and one read under way. What waits to be written has no
// limit of its own: a report a step, a heartbeat a second, and keepalive breaks
// the stream of a coordinator that is gone.
//
// The link holds it until it is done, and never lets gRPC's threads destroy it:
// its context has a reference to the channel, and a channel that is destroyed
// in a reaction makes gRPC's thread join itself.
class SessionStream final
    : public grpc::ClientBidiReactor<v1::StageMessage, v1::CoordinatorMessage> {
 public:
  explicit SessionStream(CoordinatorLink::Listener listener)
      : listener_(std::move(listener)) {}

  void Start(v1::CoordinationService::Stub& stub,
             const v1::StageMessage& hello) {
    stub.async()->StageSession(&context_, this);
    AddHold();  // Writes start outside reactions too.
    Send(hello);
    reads_.Release();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(v1::StageMessage message) { writer_.Write(std::move(message)); }
  void Close() { writer_.EndAfterWrites(absl::OkStatus()); }
  void Cancel() { context_.TryCancel(); }
  bool AwaitDone(absl::Duration timeout) {
    return done_.WaitForNotificationWithTimeout(timeout);
  }

  void OnReadDone(bool ok) override {
    reads_.Acquire();
    if (!ok) {
      // The other end is gone: nothing that is queued will be read.
      writer_.End(absl::OkStatus());
      return;
    }
    if (!answered_) {
      // Of a name's addresses the one that was reached, with its family.
      answered_ = true;
      LOG(INFO) << "the coordinator answers at "
                << absl::StrReplaceAll(context_.peer(),
                                       {{"%5B", "["}, {"%5D", "]"}});
    }
    listener_.on_message(std::move(incoming_));
    incoming_.Clear();
    reads_.Release();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }

  void OnDone(const grpc::Status& status) override {
    writer_.OnDone();
    reads_.Acquire();
    listener_.on_broken(common::rpc::FromGrpcStatus(status));
    done_.Notify();
  }

 private:
  // Constant after construction.
  const CoordinatorLink::Listener listener_;
  // Own synchronisation.
  HappensBefore reads_;
  Notification done_;
  common::rpc::StreamWriter<v1::StageMessage> writer_{
      common::rpc::ClientWrites<v1::StageMessage>(*this)};
  // gRPC's.
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  bool answered_ = false;  // Handed on as incoming_ is.
};

// One registration attempt.
struct Registration {
  grpc::ClientContext context;
  v1::RegisterStageRequest request;
  v1::RegisterStageResponse response;
  CoordinatorLink::Registered done;
  HappensBefore tag;
};

class GrpcCoordinatorLink final : public CoordinatorLink {
 public:
  explicit GrpcCoordinatorLink(const common::rpc::Address& address)
      : stub_(v1::CoordinationService::NewStub(common::rpc::CreateChannel(
            address, common::rpc::ChannelUse::kSession))) {}

  ~GrpcCoordinatorLink() override {
    // Of a coordinator that does not answer: their deadline is longer than the
    // time that a daemon has to end.
    for (const auto& call : Pending()) call->context.TryCancel();
    if (const auto stream = TakeStream()) End(*stream);
    MutexLock lock(&mutex_);
    const auto idle = [this] {
      mutex_.AssertHeld();
      return registrations_ == 0;
    };
    mutex_.Await(absl::Condition(&idle));  // Cancelled: it comes.
  }

  void Register(const v1::RegisterStageRequest& request, absl::Duration timeout,
                Registered done) override {
    const auto registration = std::make_shared<Registration>();
    Registration* call = registration.get();
    call->request = request;
    call->done = std::move(done);
    call->context.set_deadline(common::rpc::DeadlineAfter(timeout));
    {
      MutexLock lock(&mutex_);
      pending_[call] = registration;
      ++registrations_;
    }
    call->tag.Release();
    stub_->async()->RegisterStage(
        &call->context, &call->request, &call->response,
        [this, call](grpc::Status status) {
          call->tag.Acquire();
          if (status.ok()) {
            call->done(std::move(call->response));
          } else {
            call->done(common::rpc::FromGrpcStatus(status));
          }
          Ended(call);
        });
  }

  void OpenStream(const v1::StageMessage& hello, Listener listener) override {
    if (const auto old = TakeStream()) End(*old);
    const auto stream = std::make_shared<SessionStream>(std::move(listener));
    {
      MutexLock lock(&mutex_);
      stream_ = stream;
    }
    stream->Start(*stub_, hello);
  }

  void Send(v1::StageMessage message) override {
    if (const auto stream = Stream()) stream->Send(std::move(message));
  }

  void CloseStream() override {
    if (const auto stream = Stream()) stream->Close();
  }

  void CancelStream() override {
    if (const auto stream = Stream()) stream->Cancel();
  }

 private:
  std::vector<std::shared_ptr<Registration>> Pending() {
    MutexLock lock(&mutex_);
    std::vector<std::shared_ptr<Registration>> all;
    for (const auto& [call, registration] : pending_) {
      all.push_back(registration);
    }
    return all;
  }
  void Ended(Registration* call) {
    std::shared_ptr<Registration> last;
    {
      MutexLock lock(&mutex_);
      last = std::move(pending_[call]);
      pending_.erase(call);
    }
    // Its context refers to the channel, which the link still has now.
    last.reset();
    MutexLock lock(&mutex_);
    --registrations_;
  }
  std::shared_ptr<SessionStream> Stream() {
    MutexLock lock(&mutex_);
    return stream_;
  }
  std::shared_ptr<SessionStream> TakeStream() {
    MutexLock lock(&mutex_);
    return std::move(stream_);
  }
  static void End(SessionStream& stream) {
    stream.Close();
    if (stream.AwaitDone(kCloseTimeout)) return;
    stream.Cancel();
    stream.AwaitDone(absl::InfiniteDuration());  // Cancelled: it comes.
  }

  const std::unique_ptr<v1::CoordinationService::Stub> stub_;
  Mutex mutex_;
  std::shared_ptr<SessionStream> stream_ ABSL_GUARDED_BY(mutex_);
  std::map<Registration*, std::shared_ptr<Registration>> pending_
      ABSL_GUARDED_BY(mutex_);
  int registrations_ ABSL_GUARDED_BY(mutex_) = 0;  // Whose memory there is.
};

}  // namespace

std::unique_ptr<CoordinatorLink> MakeGrpcCoordinatorLink(
    const common::rpc::Address& address) {
  return std::make_unique<GrpcCoordinatorLink>(address);
}

}  // namespace penstock::server::service
