// The coordinator's whole logic: (state, event, now) -> (state, actions). No
// gRPC, thread, lock, clock or file in it; the shells in coordinator/service
// deliver events one at a time, carry the actions out in their order, and call
// Tick no later than NextTick().
//
//   client  --CreateJob, CancelJob-->  +------+  --PublishJob, WriteJobFile-->
//   stage   --RegisterStage, session-> | Core |  --SendToStage, CloseSession->
//   parent  --ReportStageExit------->  +------+  --ProbeMonitor, MakePlan-->
//   clock   --Tick-->                  --ChangeJobFolder, ForgetJob-->
//
// Inside: registry/ knows the stages, jobs/ the jobs; StageLinks numbers what
// is sent to a stage and sends it again after a broken session; each job that
// has not ended has a JobRun (job_run.h), which assembles and steps it.
// Nothing here decides an order of commands: that is the verified plan's.
//
// What a stage may rely on, and the other way round:
//   - Messages of one epoch come in the order of `seq`. After a broken session
//     what Hello.acked_seq does not cover is sent again. A stage drops
//     duplicates; what it has said in the epoch it says again after each
//     Welcome.
//   - So its answers, reports and Aborted may come twice; the second does
//     nothing.
//   - Abort has seq 0 and the new epoch. It is sent again after each Hello
//     until Aborted of that epoch (or a later one) comes.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_CORE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_CORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/time/clock.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/dispatch/options.h"
#include "coordinator/jobs/job_store.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::coordinator::dispatch {

// Thread-compatible: confined to the coordinator's loop. Every method returns
// at once (planning is an action, and goes before CreateJob) and appends to
// `actions`; a failed call has appended what still must happen.
class Core {
 public:
  // `store` is borrowed for the core's life.
  Core(const Options& options, jobs::JobStore& store);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // --- Stages.

  // InvalidArgument, AlreadyExists, FailedPrecondition: registry/registry.h.
  absl::StatusOr<v1::RegisterStageResponse> RegisterStage(
      const v1::RegisterStageRequest& request, const Now& now,
      Actions& actions);

  // `session` said Hello; it is open when this returns OK, with Welcome among
  // the actions. An older session of the stage is closed.
  // InvalidArgument: a name or number that cannot be. NotFound: the stage must
  // register again. Aborted: it has seen a higher term or epoch of this term,
  // so this coordinator is stale.
  absl::Status OpenSession(SessionId session, const v1::Hello& hello,
                           const Now& now, Actions& actions);
  // The stream ended, whatever the reason. Unknown sessions are ignored.
  void BreakSession(SessionId session, const Now& now, Actions& actions);
  // Anything but Hello. NotFound: no such session is open. InvalidArgument: the
  // message makes no sense here; the session is to be closed with it.
  absl::Status Receive(SessionId session, const v1::StageMessage& message,
                       const Now& now, Actions& actions);

  // NotFound: no stage of that name and pid (with fixed_stages: it will never
  // register, and no job waits for it any longer).
  absl::Status ReportStageExit(const v1::ReportStageExitRequest& request,
                               const Now& now, Actions& actions);
  // The answer to ProbeMonitor: nobody listens there.
  void MonitorRefused(absl::string_view stage_name,
                      absl::string_view incarnation, const Now& now,
                      Actions& actions);

  // --- Jobs.

  // `job` is PlanJob's (job_plan.h). A repeated request_id gets the original
  // job. With validate_only nothing is created: the job has no id.
  // Unavailable after Close(). InvalidArgument: job_id or request_id cannot be.
  // AlreadyExists: job_id is taken, request_id made a job of another request,
  // or a job that has not ended writes to the same run directory. Else why
  // results cannot go there (NewJob.run_directory_fault).
  absl::StatusOr<v1::Job> CreateJob(const PlannedJob& job, const Now& now,
                                    Actions& actions);
  // NotFound. FailedPrecondition: it has ended.
  absl::StatusOr<v1::Job> CancelJob(absl::string_view job_id, const Now& now,
                                    Actions& actions);

  // The coordinator is about to end: takes no more jobs, and cancels those that
  // have not ended, because of `why`. Each ends within `limit` (one whose model
  // is being published, as soon as that is done) and as soon as its results are
  // written; returns their ids.
  std::vector<std::string> Close(absl::string_view why, absl::Duration limit,
                                 const Now& now, Actions& actions);

  // A WriteJobFile failed: the job does, DISK_FULL where the status is
  // ResourceExhausted. Of a job that has ended it changes nothing.
  void WriteFailed(absl::string_view job_id, const absl::Status& status,
                   const Now& now, Actions& actions);

  // Lines that were appended to a result file are not there any more: somebody
  // removed or cut it. The job goes on, with a warning.
  void LinesLost(absl::string_view job_id, absl::string_view file,
                 const Now& now, Actions& actions);

  // The answer to MakePlan.
  void PlanMade(dispatch::PlanMade made, const Now& now, Actions& actions);

  // The answer to ChangeJobFolder. A failure is the job's, as of WriteFailed.
  void FolderChanged(const dispatch::FolderChanged& done, const Now& now,
                     Actions& actions);

  // --- Time.

  // Does what is due: at least every heartbeat. Early or repeated calls do no
  // harm. One that comes a quarter of a lease late shows that the coordinator
  // itself did not run: then no stage is blamed for its silence.
  void Tick(const Now& now, Actions& actions);
  common::time::MonotonicTime NextTick() const;

  // --- Reads. Answered from memory.

  absl::StatusOr<v1::Job> GetJob(absl::string_view id_or_name) const;
  // As jobs::JobStore::List.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(absl::string_view before,
                                                int limit) const;
  absl::StatusOr<v1::Stage> GetStage(absl::string_view name,
                                     const Now& now) const;
  std::vector<v1::Stage> ListStages(const Now& now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_CORE_H_
