// JobService over gRPC.
#ifndef PENSTOCK_COORDINATOR_SERVICE_JOB_SERVICE_H_
#define PENSTOCK_COORDINATOR_SERVICE_JOB_SERVICE_H_

#include <memory>

#include "common/rpc/reactor_registry.h"
#include "common/time/clock.h"
#include "coordinator/service/core_loop.h"
#include "coordinator/service/job_feed.h"
#include "coordinator/service/job_intake.h"

namespace grpc {
class Service;
}

namespace penstock::coordinator::service {

struct Admissions;

// Borrows everything; jobs are read and planned on a thread of the service's.
// Thread-safe.
class JobServer {
 public:
  static std::unique_ptr<JobServer> Create(
      CoreLoop& loop, JobFeed& feed, const JobIntake& intake,
      const common::time::Clock& clock, Admissions& admissions,
      common::rpc::ReactorRegistry& reactors);
  virtual ~JobServer() = default;
  virtual grpc::Service* grpc_service() = 0;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_JOB_SERVICE_H_
