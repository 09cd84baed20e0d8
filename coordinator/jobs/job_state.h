// The life of a job, as one table.
//
//                    (1)         (2)           (3)        (7)
//   (create) -> QUEUED -> PLANNING -> ASSEMBLING -> RUNNING -> SUCCEEDED
//
//   any of the four that are not terminal:
//     -> CANCELLING (4) -> CANCELLED (5)
//     -> FAILED (6)
//
//   1 enough stages are free; they are reserved and check their inputs
//   2 inputs seen, plan made and verified; assignments go out
//   3 every stage is ready; the first commands go out
//   4 a person cancels
//   5 every stage has dropped the job
//   6 the first cause of a failure is known
//   7 every shard of the trained model is written
//
// What has ended stays so. RECOVERING is in the contract for recovery, which is
// not built yet; nothing enters it.
#ifndef PENSTOCK_COORDINATOR_JOBS_JOB_STATE_H_
#define PENSTOCK_COORDINATOR_JOBS_JOB_STATE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::jobs {

// SUCCEEDED, FAILED or CANCELLED.
bool IsTerminal(v1::Job::State state);

// OK, or FailedPrecondition naming both states.
absl::Status CheckTransition(v1::Job::State from, v1::Job::State to);

// As users see them: "RUNNING", "STAGE_LOST"; "" for an unspecified reason.
std::string StateName(v1::Job::State state);
std::string ReasonName(v1::Job::StateReason reason);

// The reason written as `name`; nullopt: there is none of that name.
std::optional<v1::Job::StateReason> ReasonFromName(const std::string& name);

}  // namespace penstock::coordinator::jobs

#endif  // PENSTOCK_COORDINATOR_JOBS_JOB_STATE_H_
