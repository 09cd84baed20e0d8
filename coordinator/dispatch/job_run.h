// One job from QUEUED to its end: chooses stages, checks inputs, has it
// planned, assembles, drives the steps, and finds the first cause when
// something fails.
//
//   phase             waits for                        then
//   [1] queued        K free stages                    CheckInputs to all
//   [2] checking      every InputsChecked              MakePlan
//   [3] planning      the plan                         the model's folder
//   [4] probing       every OutputProbed               Assignments
//   [5] assembling    every StageReady                 the first commands
//   [6] stepping      reports, acks, evaluations       releases, commands
//   [7] ending        every EndReport                  the folder's name
//   [8] publishing    model/ stands                    SUCCEEDED
//   [9] stopping      every Aborted, or its deadline   FAILED or CANCELLED
//  [10] closing       its results, or their deadline   the end is told
//  [11] over
//
//   any of 1 to 7 -> 9 (from 1 straight to 10) on a failure or a cancel; from 8
//   only when the folder cannot be renamed: no stage is needed any more. 8 and
//   9 -> 10, so that whoever hears of the end finds the files whole; without
//   files straight to 11
//
// The job's public state (jobs/job_state.h) follows the phases. Each wait has
// a deadline; its error names what is missing.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_JOB_RUN_H_
#define PENSTOCK_COORDINATOR_DISPATCH_JOB_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/time/clock.h"
#include "coordinator/dispatch/accounting.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/dispatch/assembly.h"
#include "coordinator/dispatch/first_cause.h"
#include "coordinator/dispatch/inputs.h"
#include "coordinator/dispatch/job_log.h"
#include "coordinator/dispatch/options.h"
#include "coordinator/dispatch/skipped_steps.h"
#include "coordinator/dispatch/stage_links.h"
#include "coordinator/dispatch/stall_report.h"
#include "coordinator/dispatch/step_barrier.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/planner/plan.h"
#include "coordinator/registry/registry.h"

namespace penstock::coordinator::dispatch {

// What every call gets: the core's parts, the time, and where actions go.
struct RunContext {
  const Options& options;
  registry::Registry& registry;
  StageLinks& links;
  int64_t& epoch;  // The newest that was given out; grows.
  const Now& now;
  Actions& actions;
};

// Thread-compatible: confined to the core's loop.
class JobRun {
 public:
  JobRun(const PlannedJob& job, const JobLog& log, const Options& options);

  const v1::Job& job() const { return log_.job(); }
  bool queued() const { return phase_ == Phase::kQueued; }
  bool over() const { return phase_ == Phase::kOver; }
  // It has no stages any more, and only its end is to be told.
  bool closing() const { return phase_ == Phase::kClosing; }
  const spec::JobSpec& spec() const { return job_.spec; }
  // Whether the stage works for this job.
  bool Has(absl::string_view stage) const { return RankOf(stage) >= 0; }

  void Created(const RunContext& context);
  // Starts when there are enough free stages; returns whether it did.
  // REQUIRES: queued().
  bool TryStart(const RunContext& context);
  // Says which stages it waits for, and again later. REQUIRES: queued().
  void KeepWaiting(const RunContext& context);
  // CANCELLED because of `why`; its stages have `limit` to drop it. What ends
  // already ends as it would, but no later than that.
  void Cancel(absl::string_view why, absl::Duration limit,
              const RunContext& context);
  // A stage that it waits for will never come: STAGE_LOST. REQUIRES: queued().
  void StageGone(const v1::Cause& cause, const RunContext& context);

  // --- Of a stage of this job.

  // InvalidArgument: it makes no sense; the job has failed with it.
  absl::Status Receive(absl::string_view stage, const v1::StageMessage& message,
                       const RunContext& context);
  void SessionBroken(absl::string_view stage, const RunContext& context);
  void SessionRestored(absl::string_view stage, const v1::Hello& hello,
                       const RunContext& context);
  void MonitorRefused(absl::string_view stage, const RunContext& context);
  // It is LOST, and why.
  void StageLost(absl::string_view stage, const v1::Cause& cause,
                 const RunContext& context);
  // It has dropped this job.
  void StageReleased(absl::string_view stage, const RunContext& context);
  // Its clock is measured: warns once where it is off by seconds.
  void TellSkew(absl::string_view stage, const RunContext& context);
  // More is known of a stage that was lost: how its process ended.
  void ExplainLoss(absl::string_view stage, const std::string& how,
                   const RunContext& context);

  void PlanMade(absl::StatusOr<planner::Plan> plan, const RunContext& context);

  // A result file could not be written.
  void WriteFailed(const absl::Status& status, const RunContext& context);
  // Of a result file (core.h).
  void LinesLost(absl::string_view file, const RunContext& context);
  void FolderChanged(const dispatch::FolderChanged& done,
                     const RunContext& context);

  // The coordinator itself did not run for the last `gap`: no wait of this job
  // is the longer for it.
  void Forgive(absl::Duration gap, const RunContext& context);

  void Tick(const RunContext& context);
  common::time::MonotonicTime NextTick() const;

 private:
  enum class Phase {
    kQueued,
    kChecking,
    kPlanning,
    kProbing,
    kAssembling,
    kStepping,
    kEnding,
    kPublishing,
    kStopping,
    kClosing,
    kOver,
  };
  // How a job that stops ends.
  struct Verdict {
    v1::Job::State state = v1::Job::STATE_FAILED;
    v1::Job::StateReason reason = v1::Job::STATE_REASON_UNSPECIFIED;
    v1::Cause cause;
  };

  int RankOf(absl::string_view stage) const;
  int ranks() const { return static_cast<int>(crew_.members.size()); }
  // Says it to a rank. False: it is too large to be said, and the job has
  // failed with that.
  bool Tell(int rank, v1::CoordinatorMessage message,
            const RunContext& context);
  // Whether what becomes of a stage still decides how the job ends: not once it
  // is stopping, and not while its finished model gets its name.
  bool NeedsStages() const { return phase_ != Phase::kPublishing && !ending(); }
  // Whether it is settled how the job ends.
  bool ending() const {
    return phase_ == Phase::kStopping || closing() || over();
  }
  // Elsewhere a message of `phase` is late or early: nobody waits for it.
  bool InPhase(Phase phase) const { return phase_ == phase; }

  // job_run_assembly.cc
  void OnInputsChecked(int rank, const v1::InputsChecked& checked,
                       const RunContext& context);
  void OrderPlan(const RunContext& context);
  // Whether the crew can hold it; InvalidArgument at its place.
  absl::Status AcceptPlan(planner::Plan plan);
  void Assemble(const RunContext& context);
  absl::Status OnReady(int rank, const v1::StageReady& ready,
                       const RunContext& context);
  // Warns where a rank did not allocate what was planned.
  void CompareMemory(int rank, const v1::MemoryBytes& measured,
                     const RunContext& context);

  // job_run_output.cc
  void MakeOutput(const RunContext& context);
  void SendProbes(const RunContext& context);
  void OnOutputProbed(int rank, const v1::OutputProbed& probed,
                      const RunContext& context);
  void PublishOutput(const RunContext& context);
  void RemoveOutput(const RunContext& context);

  // job_run_steps.cc
  void StartSteps(const RunContext& context);
  void IssueCommands(const RunContext& context);
  absl::Status OnStepReport(int rank, const v1::StepReport& report,
                            const RunContext& context);
  absl::Status OnApplyAck(int rank, const v1::ApplyAck& ack,
                          const RunContext& context);
  absl::Status OnEvalReport(int rank, const v1::EvalReport& report,
                            const RunContext& context);
  // Releases, commits, issues and ends as far as the barrier allows.
  absl::Status Advance(const RunContext& context);
  void Moved(const RunContext& context);
  void Release(const StepResult& result, const RunContext& context);
  // Says that a step updates nothing, and why. False: the job has failed.
  bool TellOfSkip(const StepResult& result, const RunContext& context);
  void TellOfRun(const std::optional<SkippedSteps::Run>& ended,
                 const RunContext& context);
  bool Evaluates(int64_t step) const;
  // Commits the applied step, once its evaluation is there.
  void Commit(const RunContext& context);
  void SendEnd(const RunContext& context);
  absl::Status OnEndReport(int rank, const v1::EndReport& report,
                           const RunContext& context);
  void CompleteModel(const RunContext& context);
  void Succeed(const RunContext& context);
  // What the barrier misses.
  std::string MissingText() const;
  std::vector<RankStanding> Standings(const RunContext& context) const;
  void CheckProgress(const RunContext& context);

  // job_run_deadlines.cc
  // When the stage last got on with its files, in this phase.
  common::time::MonotonicTime ReadOn(int rank, const RunContext& context) const;
  // When any stage did, or answered.
  common::time::MonotonicTime LastProgress(const RunContext& context) const;
  // Whether the phase's deadline moved, since files are being read or written.
  bool ExtendDeadline(const RunContext& context);
  // Whether it moved since a stage is away: of that the lease decides, whose
  // loss says more.
  bool AwaitLease(const RunContext& context);
  // Ranks whose answer this phase waits for.
  std::vector<int> Unanswered() const;
  // While assembling: edges that the rank's heartbeats say do not stand.
  std::vector<OpenEdge> OpenEdges(int rank, const RunContext& context) const;
  std::string DescribeUnanswered(const RunContext& context) const;
  // The phase's deadline has passed.
  void FailOverdue(const RunContext& context);
  // Ends without the stages that did not drop the job in time.
  void StopWithout(const RunContext& context);
  // Ends without its results, which are not written in time.
  void EndWithout(const RunContext& context);

  // job_run_losses.cc
  void OnFailure(absl::string_view stage, const v1::StageFailure& failure,
                 const RunContext& context);
  void Blame(const RunContext& context);
  void Consequence(absl::string_view stage, const v1::Cause& cause,
                   const RunContext& context);

  // job_run.cc
  static v1::Job::StateReason ReasonOf(const v1::Cause& cause);
  void Fail(v1::Job::StateReason reason, const v1::Cause& cause,
            const RunContext& context);
  void FailWith(const absl::Status& status, const RunContext& context);
  void Stop(const Verdict& verdict, absl::Duration deadline,
            const RunContext& context);
  void AbortStages(const v1::Cause& cause, const RunContext& context);
  // Its last results are written, then End().
  void Finish(const Verdict& verdict, const RunContext& context);
  void WriteResults(const RunContext& context);
  void End(const RunContext& context);

  const NewJob job_;
  planner::PlanRequest request_;  // Completed once inputs are checked.
  const planner::StageMap map_;   // By which inputs are checked.
  JobLog log_;
  Phase phase_ = Phase::kQueued;
  common::time::MonotonicTime deadline_ =
      common::time::MonotonicTime::Infinite();  // Of the phase.
  common::time::MonotonicTime since_;           // When the phase began.

  Crew crew_;
  std::vector<std::optional<v1::InputsChecked>> checked_;
  ResolvedInputs inputs_;
  std::optional<planner::Plan> plan_;
  std::string output_;  // Name of the folder that model/ is made in; or "".
  bool output_is_whole_ = false;  // All of the model is there.
  std::string probe_;             // What stages write there.
  std::vector<std::optional<v1::OutputProbed>> probed_;
  std::vector<std::optional<v1::StageReady>> ready_;
  std::string fingerprint_;

  std::optional<StepBarrier> barrier_;
  int evaluation_group_ = 1;  // schedule/forward_order.h
  std::optional<Accounting> accounting_;
  int64_t issued_ = 0;  // Newest step whose commands are sent.
  std::map<int64_t, std::vector<std::optional<TimedReport>>> reports_;
  std::optional<CommittedStep> released_;  // Released, not yet applied.
  std::optional<CommittedStep> applied_;   // Applied, not yet committed.
  std::map<int64_t, v1::EvalReport> evaluations_;
  bool blank_told_ = false;  // That evaluations have no valid token.
  SkippedSteps skipped_;
  common::time::MonotonicTime first_step_;
  common::time::MonotonicTime step_start_;
  common::time::MonotonicTime moved_;  // When something last moved.
  bool stalled_ = false;
  absl::Duration command_deadline_;
  absl::Duration slowest_step_;
  std::vector<std::optional<v1::EndReport>> ends_;

  std::set<std::string> skew_told_;

  FirstCause first_cause_;
  Verdict verdict_;  // While stopping.
  v1::Job end_;      // While closing: as it will be told.
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_JOB_RUN_H_
