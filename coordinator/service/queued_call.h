// A unary call that is answered by work of some seconds, or on a disk that may
// hang, on a queue of its own. Nobody waits for that work: the call ends when
// its caller goes, or when the server does, and what is worked out later is
// dropped.
#ifndef PENSTOCK_COORDINATOR_SERVICE_QUEUED_CALL_H_
#define PENSTOCK_COORDINATOR_SERVICE_QUEUED_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/admission.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/reactor_registry.h"
#include "common/sync/happens_before.h"
#include "common/sync/serial_queue.h"

namespace penstock::coordinator::service {

// Thread-safe. Keeps itself alive until OnDone.
template <typename Request, typename Response>
class QueuedCall final : public grpc::ServerUnaryReactor,
                         public common::rpc::ClosableReactor {
 public:
  QueuedCall(const Request& request, Response* response,
             common::rpc::ReactorRegistry& reactors)
      : request_(request), response_(response), reactors_(reactors) {
    tag_.Release();
  }

  // Posts `work`, which is given the call and answers it, now or later. It is
  // not done for a call that is over when its turn comes. ResourceExhausted is
  // the answer when `admission` is full: the call counts until it is over and
  // nobody works on it any more. Returns the reactor, for gRPC.
  template <typename Work>
  static grpc::ServerUnaryReactor* Begin(const Request* request,
                                         Response* response,
                                         common::rpc::Admission& admission,
                                         common::rpc::ReactorRegistry& reactors,
                                         common::sync::SerialQueue& queue,
                                         Work work) {
    const auto call =
        std::make_shared<QueuedCall>(*request, response, reactors);
    call->self_ = call;
    absl::StatusOr<common::rpc::Admission::Ticket> ticket = admission.Enter();
    if (!ticket.ok()) {
      call->Close(ticket.status());
    } else if (call->ticket_ = *std::move(ticket); reactors.Add(call.get())) {
      queue.Post([call, work = std::move(work)] {
        if (!call->over()) work(call);
      });
    } else {
      call->Close(absl::UnavailableError("the coordinator is shutting down"));
    }
    return call.get();
  }

  // A copy: gRPC's is gone when the call is over.
  const Request& request() const { return request_; }
  // Nobody waits for the answer any more.
  bool over() const { return over_; }

  // Dropped when the call is over.
  void Answer(absl::StatusOr<Response> result) {
    if (over_.exchange(true)) return;
    const absl::Status status = result.status();
    if (result.ok()) *response_ = *std::move(result);
    FinishWith(status);
  }

  void Close(const absl::Status& status) override {
    if (!over_.exchange(true)) FinishWith(status);
  }
  void OnCancel() override {
    tag_.Acquire();
    Close(absl::CancelledError("the call was cancelled"));
  }
  void OnDone() override {
    tag_.Acquire();
    reactors_.Remove(this);
    const std::shared_ptr<QueuedCall> keep = std::move(self_);
  }

 private:
  void FinishWith(const absl::Status& status) {
    tag_.Release();
    common::rpc::FinishReactor(*this, status);
  }

  // Constant after Begin().
  const Request request_;
  Response* const response_;  // gRPC's, until the call is over.
  common::rpc::ReactorRegistry& reactors_;
  common::rpc::Admission::Ticket ticket_;
  // Own synchronisation.
  common::sync::HappensBefore tag_;
  std::atomic<bool> over_{false};
  // gRPC's.
  std::shared_ptr<QueuedCall> self_;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_QUEUED_CALL_H_
