// Jobs in memory: the store of every coordinator so far, embedded (which lives
// as long as its job) or deployed. A coordinator that starts again has
// forgotten all jobs (docs/operations.md); their result folders stay.
#ifndef PENSTOCK_COORDINATOR_JOBS_IN_MEMORY_JOB_STORE_H_
#define PENSTOCK_COORDINATOR_JOBS_IN_MEMORY_JOB_STORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "coordinator/jobs/job_store.h"

namespace penstock::coordinator::jobs {

// Thread-compatible.
class InMemoryJobStore final : public JobStore {
 public:
  absl::Status Create(const JobRecord& record) override;
  absl::Status Update(const v1::Job& job) override;
  absl::StatusOr<JobRecord> Get(absl::string_view id_or_name) const override;
  absl::StatusOr<JobRecord> GetByRequestId(
      absl::string_view request_id) const override;
  absl::StatusOr<std::vector<v1::Job>> List(absl::string_view before,
                                            int limit) const override;
  std::vector<v1::Job> ForgetEnded(size_t kept) override;

 private:
  // By the order of creation, oldest first.
  using Records = std::map<int64_t, JobRecord>;

  // records_.end(): there is none.
  Records::const_iterator Find(absl::string_view id_or_name) const;

  Records records_;
  int64_t created_ = 0;  // Ever.
  std::map<std::string, int64_t> by_id_;
  std::map<std::string, int64_t> by_request_id_;
  std::deque<int64_t> ended_;  // By the order of their ends, oldest first.
};

}  // namespace penstock::coordinator::jobs

#endif  // PENSTOCK_COORDINATOR_JOBS_IN_MEMORY_JOB_STORE_H_
