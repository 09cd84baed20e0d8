// Where jobs are kept. The core asks it by value and writes whole records; the
// one in memory forgets at the coordinator's end, a durable one does not.
#ifndef PENSTOCK_COORDINATOR_JOBS_JOB_STORE_H_
#define PENSTOCK_COORDINATOR_JOBS_JOB_STORE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::jobs {

// One job, as it is told to people and as it was asked for.
struct JobRecord {
  v1::Job job;
  // The request that made it: its request_id makes creation idempotent, and
  // from a durable store a restarted coordinator parses the rest again.
  v1::CreateJobRequest request;
};

// Thread-compatible: confined to the core's loop. Calls may block on a disk.
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Durable when it returns. AlreadyExists: the id is taken.
  virtual absl::Status Create(const JobRecord& record) = 0;

  // Replaces the job of an existing record. NotFound: no such id.
  // FailedPrecondition: the change of state is not legal (job_state.h).
  virtual absl::Status Update(const v1::Job& job) = 0;

  // By id, or by name for its newest job. NotFound names what was asked for.
  virtual absl::StatusOr<JobRecord> Get(absl::string_view id_or_name) const = 0;

  // The job that was created with this request id. NotFound: none.
  virtual absl::StatusOr<JobRecord> GetByRequestId(
      absl::string_view request_id) const = 0;

  // At most `limit` jobs, newest first, older than `before` ("": from the
  // newest). NotFound: there is no job `before`.
  virtual absl::StatusOr<std::vector<v1::Job>> List(absl::string_view before,
                                                    int limit) const = 0;

  // Of the jobs that have ended keeps the `kept` that ended last; forgets the
  // others, with their requests, and returns them.
  virtual std::vector<v1::Job> ForgetEnded(size_t kept) = 0;
};

}  // namespace penstock::coordinator::jobs

#endif  // PENSTOCK_COORDINATOR_JOBS_JOB_STORE_H_
