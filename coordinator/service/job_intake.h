// From a CreateJob request to a NewJob: parses the job file, opens the small
// files that it names (config.json, schedule file, profile), makes paths
// absolute. The only place where the coordinator opens files that a user named.
#ifndef PENSTOCK_COORDINATOR_SERVICE_JOB_INTAKE_H_
#define PENSTOCK_COORDINATOR_SERVICE_JOB_INTAKE_H_

#include "absl/status/statusor.h"
#include "coordinator/dispatch/actions.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::service {

// Immutable.
class JobIntake {
 public:
  // kEmbedded: the client and this process share a machine and a user, so
  // requests name folders of it; from here on every path is absolute.
  // kDeployed: paths are refused with the remedy, and none is opened.
  enum class Mode { kDeployed, kEmbedded };
  explicit JobIntake(Mode mode) : mode_(mode) {}

  // Blocks on files. InvalidArgument with every violation, a line each.
  absl::StatusOr<dispatch::NewJob> Read(
      const v1::CreateJobRequest& request) const;

 private:
  const Mode mode_;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_JOB_INTAKE_H_
