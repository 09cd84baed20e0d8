// PlanService over gRPC.
#ifndef PENSTOCK_COORDINATOR_SERVICE_PLAN_SERVICE_H_
#define PENSTOCK_COORDINATOR_SERVICE_PLAN_SERVICE_H_

#include <memory>

#include "common/rpc/reactor_registry.h"

namespace grpc {
class Service;
}

namespace penstock::coordinator::service {

struct Admissions;

// Borrows both. Computes on a thread of its own. Thread-safe.
class PlanServer {
 public:
  static std::unique_ptr<PlanServer> Create(
      Admissions& admissions, common::rpc::ReactorRegistry& reactors);
  virtual ~PlanServer() = default;
  virtual grpc::Service* grpc_service() = 0;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_PLAN_SERVICE_H_
