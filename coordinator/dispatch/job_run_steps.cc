// JobRun from the first command to the last commit: kStepping.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/accounting.h"
#include "coordinator/dispatch/command_stream.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/schedule/forward_order.h"

namespace penstock::coordinator::dispatch {

using v1::Job;
using v1::Occurrence;

namespace {

int64_t MicroBatchTokens(const spec::JobSpec& resolved) {
  return resolved.batch.micro_batch.value_or(1) *
         resolved.data.sequence_length.value_or(0);
}

}  // namespace

void JobRun::StartSteps(const RunContext& context) {
  const spec::JobSpec& spec = inputs_.spec;
  const schedule::Placement& placement = plan_->program.placement;
  int64_t parameters = 0;
  for (const auto& ready : ready_) {
    for (const v1::ParameterInfo& parameter : ready->parameters()) {
      parameters += parameter.owned() ? 1 : 0;
    }
  }
  barrier_.emplace(
      BarrierOptions{.ranks = ranks(),
                     .head_rank = placement.rank_of(placement.stages() - 1),
                     .micro_batches = plan_->program.micro_batches,
                     .stages = placement.stages(),
                     .micro_batch_tokens = MicroBatchTokens(spec),
                     .parameters = parameters,
                     .steps = inputs_.steps,
                     .optimizer = spec.optimizer,
                     .lr_schedule = spec.lr_schedule});
  evaluation_group_ = schedule::ForwardGroup(plan_->program);
  accounting_.emplace(ranks(), spec.batch.global, inputs_.sequences);
  for (const CrewMember& member : crew_.members) {
    CHECK_OK(context.registry.Move(member.name, v1::Stage::STATE_RUNNING));
  }
  // Absent from a job that was refused: nothing of it ran.
  *log_.mutable_job().mutable_start_time() =
      common::time::ToProto(context.now.wall);
  log_.Move(Job::STATE_RUNNING, context.now, context.actions);
  phase_ = Phase::kStepping;
  deadline_ = context.now.monotonic + context.options.registry.lease;
  first_step_ = step_start_ = moved_ = context.now.monotonic;
  IssueCommands(context);
}

bool JobRun::Evaluates(int64_t step) const {
  return inputs_.evaluation_micro_batches > 0 &&
         (step % inputs_.spec.evaluate->every == 0 || step == inputs_.steps);
}

void JobRun::IssueCommands(const RunContext& context) {
  while (issued_ < inputs_.steps &&
         issued_ < barrier_->applied() + context.options.window) {
    ++issued_;
    const bool timings = CarriesFullTimings(issued_, inputs_.steps);
    for (int rank = 0; rank < ranks(); ++rank) {
      v1::CoordinatorMessage message;
      *message.mutable_commands() =
          TrainCommands(plan_->program, rank, issued_, timings);
      if (!Tell(rank, std::move(message), context)) return;
      if (!Evaluates(issued_)) continue;
      v1::CoordinatorMessage evaluate;
      *evaluate.mutable_commands() =
          EvaluateCommands(plan_->program, rank, issued_,
                           inputs_.evaluation_micro_batches, evaluation_group_);
      if (!Tell(rank, std::move(evaluate), context)) return;
    }
  }
}

absl::Status JobRun::OnStepReport(int rank, const v1::StepReport& report,
                                  const RunContext& context) {
  context.links.Acknowledge(crew_.members[rank].name, report.acked_seq());
  if (!InPhase(Phase::kStepping)) return absl::OkStatus();
  const int64_t before = barrier_->accepted();
  RETURN_IF_ERROR(barrier_->AddReport(rank, report));
  // One that is said again may be of a step that is released already.
  if (barrier_->accepted() == before) return absl::OkStatus();
  Moved(context);
  auto& reports = reports_[report.step()];
  reports.resize(ranks());
  reports[rank] =
      TimedReport{.report = report, .arrived = context.now.monotonic};
  context.registry.SetStep(crew_.members[rank].name, report.step() - 1);
  return Advance(context);
}

absl::Status JobRun::OnApplyAck(int rank, const v1::ApplyAck& ack,
                                const RunContext& context) {
  context.links.Acknowledge(crew_.members[rank].name, ack.acked_seq());
  if (!InPhase(Phase::kStepping)) return absl::OkStatus();
  const int64_t before = barrier_->accepted();
  RETURN_IF_ERROR(barrier_->AddAck(rank, ack.step()));
  if (barrier_->accepted() == before) return absl::OkStatus();
  Moved(context);
  context.registry.SetStep(crew_.members[rank].name, ack.step());
  return Advance(context);
}

absl::Status JobRun::OnEvalReport(int rank, const v1::EvalReport& report,
                                  const RunContext& context) {
  if (!InPhase(Phase::kStepping)) return absl::OkStatus();
  if (report.step() < 1 || report.step() > issued_ ||
      !Evaluates(report.step())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " reports an evaluation of step ",
                     report.step(), ", which is not evaluated"));
  }
  const int64_t tokens =
      inputs_.evaluation_micro_batches * MicroBatchTokens(inputs_.spec);
  if (report.valid_tokens() < 0 || report.valid_tokens() > tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " counts ", report.valid_tokens(),
                     " valid tokens in the evaluation of step ", report.step(),
                     ", of ", tokens));
  }
  if (report.step() > log_.job().step() &&
      evaluations_.emplace(report.step(), report).second) {
    Moved(context);
  }
  return Advance(context);
}

void JobRun::Moved(const RunContext& context) {
  moved_ = context.now.monotonic;
  stalled_ = false;
}

absl::Status JobRun::Advance(const RunContext& context) {
  while (InPhase(Phase::kStepping)) {
    if (released_.has_value() &&
        released_->result.step == barrier_->applied()) {
      CHECK(!applied_.has_value());
      applied_ = std::move(released_);
      released_.reset();
      applied_->committed = context.now.monotonic;
      applied_->wall = context.now.wall;
      IssueCommands(context);
    }
    // A line has its validation loss: the evaluation comes before the next
    // step's report from the same rank.
    if (applied_.has_value()) Commit(context);
    if (log_.job().step() == inputs_.steps) {
      SendEnd(context);
      break;
    }
    if (applied_.has_value()) break;
    ASSIGN_OR_RETURN(const std::optional<StepResult> result,
                     barrier_->Release());
    if (!result.has_value()) break;
    Release(*result, context);
  }
  return absl::OkStatus();
}

void JobRun::TellOfRun(const std::optional<SkippedSteps::Run>& ended,
                       const RunContext& context) {
  if (!ended.has_value()) return;
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = ended->kind,
              .message = Describe(*ended),
              .step = ended->first + ended->count - 1},
             context.now, context.actions);
}

bool JobRun::TellOfSkip(const StepResult& result, const RunContext& context) {
  const bool broken = !result.nonfinite.empty();
  const std::string kind = broken                     ? "NONFINITE"
                           : result.valid_tokens == 0 ? "NO_VALID_TOKENS"
                                                      : "";
  TellOfRun(skipped_.Next(result.step, kind), context);
  if (kind.empty()) return true;
  const std::string stage =
      broken ? crew_.members[result.nonfinite_rank].name : std::string();
  const std::string message =
      broken ? absl::StrCat("step ", result.step, ": ", result.nonfinite,
                            " on ", stage, " is not finite")
             : absl::StrCat("step ", result.step,
                            " has no valid token; it updates nothing");
  const bool skip =
      inputs_.spec.optimizer.on_nonfinite == spec::OnNonfinite::kSkip;
  const int64_t in_a_row = skipped_.run().count;
  if (broken && (!skip || in_a_row >= kMostNonfiniteSteps)) {
    const std::string advice =
        skip ? absl::StrCat("; ", Describe(skipped_.run()),
                            ", and none will be finite again; lower the "
                            "learning rate")
             : "; lower the learning rate, or set optimizer.on_nonfinite: skip";
    Fail(Job::STATE_REASON_NONFINITE,
         common::rpc::ToCause(
             common::status::WithReason(
                 absl::OutOfRangeError(absl::StrCat(message, advice)),
                 common::status::kReasonNonfinite),
             stage),
         context);
    return false;
  }
  if (in_a_row == 1) {
    log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
                .kind = kind,
                .message = message + (broken ? "; skipped" : ""),
                .stage_name = stage,
                .step = result.step},
               context.now, context.actions);
  }
  return true;
}

void JobRun::Release(const StepResult& result, const RunContext& context) {
  if (!TellOfSkip(result, context)) return;
  CommittedStep step{.result = result, .started = step_start_};
  for (auto& report : reports_[result.step]) {
    step.reports.push_back(*std::move(report));
  }
  reports_.erase(result.step);
  released_ = std::move(step);
  for (int rank = 0; rank < ranks(); ++rank) {
    v1::CoordinatorMessage message;
    *message.mutable_release() = result.release;
    if (!Tell(rank, std::move(message), context)) return;
  }
}

void JobRun::Commit(const RunContext& context) {
  const int64_t step = applied_->result.step;
  step_start_ = applied_->committed;
  if (Evaluates(step)) {
    const auto it = evaluations_.find(step);
    if (it == evaluations_.end()) return;  // Wait for it.
    if (it->second.valid_tokens() == 0 && !std::exchange(blank_told_, true)) {
      log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
                  .kind = "NO_VALID_TOKENS",
                  .message = absl::StrCat(
                      "the evaluation after step ", step,
                      " has no validation loss: every label of its sequences "
                      "is ignored"),
                  .step = step},
                 context.now, context.actions);
    }
    applied_->validation_loss =
        it->second.loss_sum() / static_cast<double>(it->second.valid_tokens());
    evaluations_.erase(it);
    step_start_ = std::max(step_start_, context.now.monotonic);
  }
  const v1::StepMetrics metrics = accounting_->Commit(*applied_);
  applied_.reset();
  slowest_step_ =
      std::max(slowest_step_, absl::Seconds(metrics.step_seconds()));
  log_.Step(metrics, MetricsLine(metrics), context.now, context.actions);
}

}  // namespace penstock::coordinator::dispatch
