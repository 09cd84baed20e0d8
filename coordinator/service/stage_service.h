// StageService over gRPC: what the registry knows.
#ifndef PENSTOCK_COORDINATOR_SERVICE_STAGE_SERVICE_H_
#define PENSTOCK_COORDINATOR_SERVICE_STAGE_SERVICE_H_

#include <memory>

#include "coordinator/service/core_loop.h"

namespace grpc {
class Service;
}

namespace penstock::coordinator::service {

struct Admissions;

// Borrows the loop. Thread-safe.
class StageServer {
 public:
  static std::unique_ptr<StageServer> Create(CoreLoop& loop,
                                             Admissions& admissions);
  virtual ~StageServer() = default;
  virtual grpc::Service* grpc_service() = 0;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_STAGE_SERVICE_H_
