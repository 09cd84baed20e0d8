// JobRun and its stages' failures: evidence is collected (first_cause.h) until
// it says who was first; what follows from that is told as a consequence.
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/text/quote.h"
#include "coordinator/dispatch/job_run.h"

namespace penstock::coordinator::dispatch {

using v1::Job;
using v1::Occurrence;

namespace {

// Of a stage's own words. They go to the other stages, to every watcher and
// into files; a control message can hold many times more.
constexpr size_t kMaxWordsBytes = size_t{16} << 10;

}  // namespace

void JobRun::OnFailure(absl::string_view stage, const v1::StageFailure& failure,
                       const RunContext& context) {
  if (failure.epoch() != context.links.epoch(stage)) return;  // Aborted since.
  v1::Cause cause = failure.cause();
  cause.set_message(common::text::CutAfter(
      kMaxWordsBytes, std::move(*cause.mutable_message())));
  if (cause.stage_name().empty()) cause.set_stage_name(std::string(stage));
  if (!NeedsStages()) {
    if (phase_ == Phase::kStopping) Consequence(stage, cause, context);
    return;
  }
  if (!failure.has_edge() || !plan_.has_value()) {
    Fail(ReasonOf(cause), cause, context);
    return;
  }
  const schedule::Placement& placement = plan_->program.placement;
  const int stages = placement.stages();
  const auto rank_of = [&](int virtual_stage) {
    return virtual_stage >= 0 && virtual_stage < stages
               ? placement.rank_of(virtual_stage)
               : -1;
  };
  const int source = rank_of(failure.edge().source_stage());
  const int target = rank_of(failure.edge().target_stage());
  const int peer = source == RankOf(stage) ? target : source;
  if (peer < 0) {
    Fail(ReasonOf(cause), cause, context);
    return;
  }
  first_cause_.EdgeFailed({.reporter = std::string(stage),
                           .peer = crew_.members[peer].name,
                           .cause = cause,
                           .step = failure.step(),
                           .at = context.now.monotonic});
  Blame(context);
}

void JobRun::SessionBroken(absl::string_view stage, const RunContext& context) {
  if (!NeedsStages()) return;
  first_cause_.SessionBroken(stage, context.now.monotonic);
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = "SESSION_BROKEN",
              .message = absl::StrCat("the session of ", stage,
                                      " broke; it works on with what it has"),
              .stage_name = std::string(stage),
              .step = log_.job().step()},
             context.now, context.actions);
  Blame(context);
}

void JobRun::SessionRestored(absl::string_view stage, const v1::Hello& hello,
                             const RunContext& context) {
  first_cause_.SessionRestored(stage);
  const int rank = RankOf(stage);
  if (rank < 0 || hello.epoch() != context.links.epoch(stage)) return;
  if (phase_ != Phase::kStepping) return;
  // What was lost on the way: an ack, a report.
  absl::Status status;
  if (hello.applied_step() > 0) {
    v1::ApplyAck ack;
    ack.set_step(hello.applied_step());
    ack.set_acked_seq(hello.acked_seq());
    status = OnApplyAck(rank, ack, context);
  }
  if (status.ok() && phase_ == Phase::kStepping && hello.has_report()) {
    status = OnStepReport(rank, hello.report(), context);
  }
  if (!status.ok()) {
    Fail(Job::STATE_REASON_INTERNAL, common::rpc::ToCause(status, stage),
         context);
  }
}

void JobRun::MonitorRefused(absl::string_view stage,
                            const RunContext& context) {
  if (!NeedsStages()) return;
  first_cause_.MonitorRefused(stage, context.now.monotonic);
  Blame(context);
}

// Decides when the evidence suffices, or its window is over.
void JobRun::Blame(const RunContext& context) {
  if (!NeedsStages()) return;
  if (const auto lost = first_cause_.Lost(); lost.has_value()) {
    const registry::StageEntry* entry = context.registry.Find(lost->name);
    CHECK(entry != nullptr);  // Of a crew nobody is forgotten (Core::Tick).
    const v1::Cause cause =
        registry::LostCause(*entry, absl::StrCat("is lost: ", lost->evidence));
    const auto loss = context.registry.MarkLost(lost->name, cause);
    if (loss.has_value()) context.links.End(*loss, context.actions);
    StageLost(lost->name, cause, context);
    return;
  }
  const auto edge = first_cause_.Unexplained(context.now.monotonic);
  if (edge.has_value()) Fail(ReasonOf(edge->cause), edge->cause, context);
}

void JobRun::StageLost(absl::string_view stage, const v1::Cause& cause,
                       const RunContext& context) {
  if (phase_ == Phase::kStopping) {
    if (verdict_.cause.stage_name() != stage) {
      Consequence(stage, cause, context);
    }
    StageReleased(stage, context);
    return;
  }
  if (!NeedsStages()) return;
  v1::Cause told = cause;
  if (phase_ == Phase::kStepping) {
    absl::StrAppend(told.mutable_message(),
                    ReportLoss(Standings(context), RankOf(stage)));
  }
  Fail(Job::STATE_REASON_STAGE_LOST, told, context);
}

void JobRun::ExplainLoss(absl::string_view stage, const std::string& how,
                         const RunContext& context) {
  log_.Occur({.severity = Occurrence::SEVERITY_ERROR,
              .kind = "STAGE_EXITED",
              .message = absl::StrCat(stage, " ", how),
              .stage_name = std::string(stage),
              .step = log_.job().step()},
             context.now, context.actions);
  if (verdict_.cause.stage_name() == stage) {
    absl::StrAppend(verdict_.cause.mutable_message(), "; it ", how);
  }
}

void JobRun::Consequence(absl::string_view stage, const v1::Cause& cause,
                         const RunContext& context) {
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = cause.reason().empty() ? "STAGE_FAILURE" : cause.reason(),
              .message = cause.message(),
              .stage_name = std::string(stage),
              .step = log_.job().step(),
              .consequence = true},
             context.now, context.actions);
}

}  // namespace penstock::coordinator::dispatch
