// CoordinationService over gRPC: registrations, and one stream a stage.
#ifndef PENSTOCK_COORDINATOR_SERVICE_SESSIONS_H_
#define PENSTOCK_COORDINATOR_SERVICE_SESSIONS_H_

#include <memory>

#include "common/rpc/reactor_registry.h"
#include "common/time/clock.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/service/core_loop.h"

namespace grpc {
class Service;
}

namespace penstock::coordinator::service {

struct Admissions;

// Thread-safe.
class Sessions {
 public:
  // Borrows all. Sessions that end are reported to the core on `loop`, which is
  // stopped before this is destroyed.
  static std::unique_ptr<Sessions> Create(
      CoreLoop& loop, const common::time::Clock& clock, Admissions& admissions,
      common::rpc::ReactorRegistry& reactors);
  virtual ~Sessions() = default;

  virtual grpc::Service* grpc_service() = 0;

  // Queues a message, written in order; dropped when the session is gone. One
  // too many ends the session.
  virtual void Send(dispatch::SendToStage action) = 0;
  // Ends a session, dropping what is queued.
  virtual void Close(const dispatch::CloseSession& action) = 0;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_SESSIONS_H_
