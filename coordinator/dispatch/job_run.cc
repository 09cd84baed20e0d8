#include "coordinator/dispatch/job_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/result_names.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/time/duration_text.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/summary.h"
#include "coordinator/dispatch/time_profile.h"
#include "coordinator/jobs/job_state.h"
#include "coordinator/schedule/costs.h"

namespace penstock::coordinator::dispatch {

using common::time::MonotonicTime;
using v1::Job;
using v1::Occurrence;

namespace {

// Less is of no use to anybody who compares logs.
constexpr absl::Duration kSkewToTell = absl::Seconds(2);

}  // namespace

// The job's reason for a stage's cause: its own word, or what the code means.
Job::StateReason JobRun::ReasonOf(const v1::Cause& cause) {
  const auto named = jobs::ReasonFromName(cause.reason());
  if (named.has_value()) return *named;
  switch (static_cast<absl::StatusCode>(cause.code())) {
    case absl::StatusCode::kResourceExhausted:
      return Job::STATE_REASON_OUT_OF_MEMORY;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnavailable:
      return Job::STATE_REASON_TRANSPORT_TIMEOUT;
    case absl::StatusCode::kInvalidArgument:
      return Job::STATE_REASON_INVALID_SPEC;
    default:
      return Job::STATE_REASON_INTERNAL;
  }
}

JobRun::JobRun(const PlannedJob& job, const JobLog& log, const Options& options)
    : job_(job.job),
      request_(job.request),
      map_(job.map),
      log_(log),
      first_cause_(options.cause_window) {}

int JobRun::RankOf(absl::string_view stage) const {
  if (over()) return -1;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (crew_.members[rank].name == stage) return rank;
  }
  return -1;
}

bool JobRun::Tell(int rank, v1::CoordinatorMessage message,
                  const RunContext& context) {
  const absl::Status sent = context.links.Send(
      crew_.members[rank].name, std::move(message), context.actions);
  if (!sent.ok()) {
    FailWith(common::status::Annotate(
                 sent, absl::StrCat("to ", crew_.members[rank].name)),
             context);
  }
  return sent.ok();
}

void JobRun::Created(const RunContext& context) {
  log_.Created(context.now, context.actions);
  since_ = context.now.monotonic;
  deadline_ = since_ + std::min(context.options.waiting_notice,
                                context.options.queue_deadline);
  for (const std::string& note : log_.job().notes()) {
    log_.Occur({.kind = "NOTE", .message = note}, context.now, context.actions);
  }
}

absl::Status JobRun::Receive(absl::string_view stage,
                             const v1::StageMessage& message,
                             const RunContext& context) {
  const int rank = RankOf(stage);
  CHECK_GE(rank, 0);
  absl::Status status;
  switch (message.body_case()) {
    case v1::StageMessage::kInputsChecked:
      OnInputsChecked(rank, message.inputs_checked(), context);
      break;
    case v1::StageMessage::kOutputProbed:
      OnOutputProbed(rank, message.output_probed(), context);
      break;
    case v1::StageMessage::kReady:
      status = OnReady(rank, message.ready(), context);
      break;
    case v1::StageMessage::kStepReport:
      status = OnStepReport(rank, message.step_report(), context);
      break;
    case v1::StageMessage::kApplyAck:
      status = OnApplyAck(rank, message.apply_ack(), context);
      break;
    case v1::StageMessage::kEvalReport:
      status = OnEvalReport(rank, message.eval_report(), context);
      break;
    case v1::StageMessage::kEndReport:
      status = OnEndReport(rank, message.end_report(), context);
      break;
    case v1::StageMessage::kFailure:
      OnFailure(stage, message.failure(), context);
      break;
    default:
      break;  // Heartbeat and Aborted are the core's.
  }
  if (!status.ok()) {
    Fail(Job::STATE_REASON_INTERNAL, common::rpc::ToCause(status, stage),
         context);
  }
  return status;
}

void JobRun::TellSkew(absl::string_view stage, const RunContext& context) {
  const registry::StageEntry* entry = context.registry.Find(stage);
  if (entry == nullptr || skew_told_.contains(entry->name())) return;
  const absl::Duration skew =
      entry->clock_skew().value_or(absl::ZeroDuration());
  if (absl::AbsDuration(skew) < kSkewToTell) return;
  skew_told_.insert(entry->name());
  log_.Occur(
      {.severity = Occurrence::SEVERITY_WARNING,
       .kind = "CLOCK_SKEW",
       .message = absl::StrCat(
           "the clock of ", stage, " on host ", entry->host(), " is ",
           common::time::DurationText(absl::AbsDuration(skew)),
           skew > absl::ZeroDuration() ? " ahead of" : " behind",
           " the coordinator's; nothing is decided by it, but times in its log "
           "are off by that"),
       .stage_name = std::string(stage),
       .step = log_.job().step()},
      context.now, context.actions);
}

void JobRun::StageReleased(absl::string_view /*stage*/,
                           const RunContext& context) {
  if (phase_ != Phase::kStopping) return;
  for (const CrewMember& member : crew_.members) {
    const registry::StageEntry* entry = context.registry.Find(member.name);
    if (entry != nullptr && entry->job_id == log_.job().id() &&
        context.links.Aborting(member.name)) {
      return;
    }
  }
  Finish(verdict_, context);
}

void JobRun::WriteFailed(const absl::Status& status,
                         const RunContext& context) {
  FailWith(common::status::Annotate(status, "the job's results"), context);
}

void JobRun::LinesLost(absl::string_view file, const RunContext& context) {
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = "RESULTS_LOST",
              .message = absl::StrCat(
                  log_.job().run_directory(), "/", file,
                  " was removed or cut while the job ran: lines from before "
                  "are missing, what follows is appended"),
              .step = log_.job().step()},
             context.now, context.actions);
}

void JobRun::FailWith(const absl::Status& status, const RunContext& context) {
  const v1::Cause cause = common::rpc::ToCause(status, "");
  Fail(ReasonOf(cause), cause, context);
}

void JobRun::Fail(Job::StateReason reason, const v1::Cause& cause,
                  const RunContext& context) {
  if (ending()) return;
  if (reason == Job::STATE_REASON_STAGE_LOST) log_.OpenFolder(context.actions);
  log_.Occur({.severity = Occurrence::SEVERITY_ERROR,
              .kind = jobs::ReasonName(reason),
              .message = cause.message(),
              .stage_name = cause.stage_name(),
              .step = log_.job().step()},
             context.now, context.actions);
  for (const EdgeFailure& edge : first_cause_.edge_failures()) {
    if (edge.cause.message() == cause.message()) continue;
    Consequence(edge.reporter, edge.cause, context);
  }
  Stop({.state = Job::STATE_FAILED, .reason = reason, .cause = cause},
       context.options.abort_deadline, context);
}

void JobRun::Cancel(absl::string_view why, absl::Duration limit,
                    const RunContext& context) {
  if (phase_ == Phase::kStopping) {
    deadline_ = std::min(deadline_, context.now.monotonic + limit);
  }
  if (!NeedsStages()) return;        // It ends already.
  log_.OpenFolder(context.actions);  // Nobody refused the job.
  const v1::Cause cause = common::rpc::ToCause(
      common::status::WithReason(absl::CancelledError(why),
                                 common::status::kReasonUser),
      "");
  log_.Move(Job::STATE_CANCELLING, context.now, context.actions);
  Stop({.state = Job::STATE_CANCELLED,
        .reason = Job::STATE_REASON_USER,
        .cause = cause},
       limit, context);
}

void JobRun::Stop(const Verdict& verdict, absl::Duration deadline,
                  const RunContext& context) {
  phase_ = Phase::kStopping;
  verdict_ = verdict;
  deadline_ = context.now.monotonic + deadline;
  AbortStages(verdict.cause, context);
  StageReleased("", context);  // There may be nobody to wait for.
}

void JobRun::AbortStages(const v1::Cause& cause, const RunContext& context) {
  if (crew_.members.empty()) return;
  ++context.epoch;
  for (const CrewMember& member : crew_.members) {
    const registry::StageEntry* entry = context.registry.Find(member.name);
    if (entry == nullptr || entry->job_id != log_.job().id()) continue;
    context.links.Abort(member.name, context.epoch, cause, context.actions);
  }
}

void JobRun::Finish(const Verdict& verdict, const RunContext& context) {
  end_ = log_.job();
  end_.set_state(verdict.state);
  end_.set_reason(verdict.reason);
  if (verdict.cause.code() != 0) *end_.mutable_cause() = verdict.cause;
  *end_.mutable_end_time() = common::time::ToProto(context.now.wall);
  // Of a model that is not whole nothing stays.
  if (verdict.state != Job::STATE_SUCCEEDED) RemoveOutput(context);
  // The summary tells of the end, and the end's event carries the summary.
  WriteResults(context);
  log_.Announce(verdict.state, context.now, context.actions);
  if (!log_.writes()) {
    End(context);
    return;
  }
  phase_ = Phase::kClosing;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.results_deadline;
  log_.Change({.change = ChangeJobFolder::Change::kFlush}, context.actions);
}

void JobRun::End(const RunContext& context) {
  phase_ = Phase::kOver;
  deadline_ = MonotonicTime::Infinite();
  end_.set_revision(log_.job().revision());
  log_.mutable_job() = end_;
  log_.Publish(context.now, context.actions);
}

void JobRun::WriteResults(const RunContext& context) {
  std::vector<v1::StageReady> ready;
  for (const auto& entry : ready_) {
    if (entry.has_value()) ready.push_back(*entry);
  }
  const bool all_ready = !ready_.empty() && ready.size() == ready_.size();
  std::vector<v1::EndReport> ends;
  for (const auto& entry : ends_) {
    if (entry.has_value()) ends.push_back(*entry);
  }
  const bool all_ended = !ends_.empty() && ends.size() == ends_.size();
  std::optional<schedule::Costs> costs;
  std::optional<SimulatedStep> simulated;
  if (accounting_.has_value()) {
    costs = accounting_->MeasuredCosts(static_cast<int>(plan_->stages.size()));
    const auto step_seconds = accounting_->step_seconds();
    if (costs.has_value() && step_seconds.has_value()) {
      simulated = SimulateAsMeasured(*plan_, *costs, step_seconds->p50);
    }
  }
  const std::string summary =
      Summary({.job = end_,
               .crew = crew_,
               .plan = plan_.has_value() ? &*plan_ : nullptr,
               .accounting = accounting_.has_value() ? &*accounting_ : nullptr,
               .simulated = simulated.has_value() ? &*simulated : nullptr,
               .ready = all_ready ? &ready : nullptr,
               .ends = all_ended ? &ends : nullptr,
               .fingerprint = fingerprint_,
               .build = context.options.build});
  end_.set_summary_json(summary);
  if (accounting_.has_value()) {
    log_.Write(common::ids::kTraceFile,
               ChromeTrace(crew_, accounting_->traced(), first_step_),
               WriteJobFile::Mode::kReplace, context.actions);
  }
  if (simulated.has_value()) {
    log_.Write(common::ids::kPredictedFile,
               PredictedTimeline(plan_->program, *simulated),
               WriteJobFile::Mode::kReplace, context.actions);
  }
  if (costs.has_value()) {
    log_.Write(common::ids::kProfileFile, TimeProfile(*costs),
               WriteJobFile::Mode::kReplace, context.actions);
  }
  log_.Write(common::ids::kSummaryFile, summary, WriteJobFile::Mode::kReplace,
             context.actions);
}

void JobRun::Forgive(absl::Duration gap, const RunContext& context) {
  since_ = registry::AfterGap(since_, gap, context.now.monotonic);
  moved_ = registry::AfterGap(moved_, gap, context.now.monotonic);
  deadline_ += gap;
  first_cause_.Forgive(gap);
  log_.Occur(
      {.severity = Occurrence::SEVERITY_WARNING,
       .kind = "COORDINATOR_PAUSED",
       .message = absl::StrCat(
           "the coordinator itself did not run for ",
           common::time::DurationText(gap),
           " (stopped, or its machine was, or without a core); no stage is "
           "blamed for that: each has a new lease of ",
           absl::FormatDuration(context.options.registry.lease),
           " from now on"),
       .step = log_.job().step()},
      context.now, context.actions);
}

}  // namespace penstock::coordinator::dispatch
