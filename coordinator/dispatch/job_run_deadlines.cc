// JobRun and the clock: whether a phase gets on, who keeps it waiting, and what
// is said when its deadline has passed.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ids/result_names.h"
#include "common/rpc/cause.h"
#include "common/time/duration_text.h"
#include "coordinator/dispatch/job_run.h"

namespace penstock::coordinator::dispatch {

using common::time::MonotonicTime;
using v1::Job;
using v1::Occurrence;

MonotonicTime JobRun::ReadOn(int rank, const RunContext& context) const {
  const registry::StageEntry* entry =
      context.registry.Find(crew_.members[rank].name);
  return entry == nullptr ? since_ : std::max(since_, entry->progressed);
}

MonotonicTime JobRun::LastProgress(const RunContext& context) const {
  // Whoever is ready waits for the others: one that gets on is enough.
  MonotonicTime last = std::max(since_, moved_);
  for (int rank = 0; rank < ranks(); ++rank) {
    last = std::max(last, ReadOn(rank, context));
  }
  return last;
}

bool JobRun::ExtendDeadline(const RunContext& context) {
  auto deadline = MonotonicTime::Infinite();
  if (phase_ == Phase::kChecking) {
    for (const int rank : Unanswered()) {
      deadline = std::min(deadline, ReadOn(rank, context) +
                                        context.options.check_inputs_deadline);
    }
  } else if (phase_ == Phase::kAssembling) {
    deadline = std::min(
        LastProgress(context) + context.options.assembly_stall_deadline,
        since_ + context.options.assembly_deadline);
  } else if (phase_ == Phase::kEnding) {
    // As long as the models are large: tensors come to an end.
    deadline = LastProgress(context) + context.options.end_deadline;
  } else {
    return false;
  }
  if (deadline <= context.now.monotonic) return false;
  deadline_ = deadline;
  return true;
}

bool JobRun::AwaitLease(const RunContext& context) {
  if (phase_ != Phase::kChecking && phase_ != Phase::kProbing &&
      phase_ != Phase::kAssembling && phase_ != Phase::kEnding) {
    return false;
  }
  for (const CrewMember& member : crew_.members) {
    const registry::StageEntry* entry = context.registry.Find(member.name);
    if (entry == nullptr || entry->connected()) continue;
    const auto lease_end = entry->last_contact + context.options.registry.lease;
    if (context.now.monotonic >= lease_end) continue;
    deadline_ = lease_end;
    return true;
  }
  return false;
}

std::vector<int> JobRun::Unanswered() const {
  const auto without = [](const auto& answers) {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < answers.size(); ++rank) {
      if (!answers[rank].has_value()) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  };
  switch (phase_) {
    case Phase::kChecking:
      return without(checked_);
    case Phase::kProbing:
      return without(probed_);
    case Phase::kAssembling:
      return without(ready_);
    case Phase::kEnding:
      return without(ends_);
    default:
      return {};
  }
}

std::vector<OpenEdge> JobRun::OpenEdges(int rank,
                                        const RunContext& context) const {
  const registry::StageEntry* entry =
      context.registry.Find(crew_.members[rank].name);
  if (entry == nullptr) return {};
  const schedule::Placement& placement = plan_->program.placement;
  std::vector<OpenEdge> open;
  for (const v1::Edge& edge : entry->unconnected) {
    int peer = rank;  // Between two chunks of its own.
    for (const int stage : {edge.source_stage(), edge.target_stage()}) {
      if (stage < 0 || stage >= placement.stages()) continue;
      if (placement.rank_of(stage) != rank) peer = placement.rank_of(stage);
    }
    const registry::StageEntry* other =
        context.registry.Find(crew_.members[peer].name);
    open.push_back({.edge = edge,
                    .peer = crew_.members[peer].name,
                    .address = other == nullptr
                                   ? "an unknown address"
                                   : other->registration.data_address()});
  }
  return open;
}

std::string JobRun::DescribeUnanswered(const RunContext& context) const {
  std::vector<std::string> names;
  for (const int rank : Unanswered()) {
    if (phase_ == Phase::kChecking &&
        ReadOn(rank, context) + context.options.check_inputs_deadline >
            context.now.monotonic) {
      continue;  // It is reading.
    }
    const registry::StageEntry* entry =
        context.registry.Find(crew_.members[rank].name);
    names.push_back(absl::StrCat(
        crew_.members[rank].name, " on host ", crew_.members[rank].host,
        entry == nullptr
            ? std::string(" (forgotten)")
            : absl::StrCat(" (", DescribeContact(*entry, context.now.monotonic),
                           ")"),
        phase_ == Phase::kAssembling
            ? ReportUnconnected(OpenEdges(rank, context))
            : ""));
  }
  // Then it is a folder of ours that is slow.
  return names.empty() ? std::string("the coordinator")
                       : absl::StrJoin(names, ", ");
}

void JobRun::FailOverdue(const RunContext& context) {
  const std::string waited =
      common::time::DurationText(context.now.monotonic - since_);
  const std::string stages = DescribeUnanswered(context);
  Job::StateReason reason = Job::STATE_REASON_INPUT_NOT_VISIBLE;
  std::string text;
  switch (phase_) {
    case Phase::kChecking:
      text = absl::StrCat(
          "the inputs (", job_.spec.data.train,
          job_.spec.model.from.empty() ? "" : " and " + job_.spec.model.from,
          ") were neither seen nor read on for ",
          absl::FormatDuration(context.options.check_inputs_deadline), " by ",
          stages);
      break;
    case Phase::kPlanning:
      reason = Job::STATE_REASON_INTERNAL;
      text = absl::StrCat("the coordinator has not planned the job after ",
                          waited, "; use fewer, larger micro-batches");
      break;
    case Phase::kProbing:
      text = absl::StrCat("the run directory ", log_.job().run_directory(),
                          " was not written to for ", waited, " by ", stages);
      break;
    case Phase::kAssembling:
      reason = Job::STATE_REASON_TRANSPORT_TIMEOUT;
      text = absl::StrCat(
          "not ready after ", waited, ", the last ",
          common::time::DurationText(context.now.monotonic - moved_),
          " without a stage that got ready: ", stages);
      break;
    case Phase::kEnding:
      reason = Job::STATE_REASON_TRANSPORT_TIMEOUT;
      text = absl::StrCat(
          "the trained model was not written after ", waited, ", the last ",
          common::time::DurationText(context.now.monotonic -
                                     LastProgress(context)),
          " without a tensor that was hashed or written, by ", stages);
      break;
    case Phase::kPublishing:
      text = absl::StrCat(
          "the trained model in ", log_.job().run_directory(), "/", output_,
          ", which is whole, did not get its name for ", waited);
      break;
    default:
      return;  // No wait of theirs is a failure here.
  }
  Fail(reason, common::rpc::ToCause(absl::DeadlineExceededError(text), ""),
       context);
}

void JobRun::StopWithout(const RunContext& context) {
  std::vector<std::string> holding;
  for (const CrewMember& member : crew_.members) {
    if (context.links.Aborting(member.name)) holding.push_back(member.name);
  }
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = "STAGE_DID_NOT_ABORT",
              .message = absl::StrCat("still not free after the abort: ",
                                      absl::StrJoin(holding, ", ")),
              .step = log_.job().step(),
              .consequence = true},
             context.now, context.actions);
  Finish(verdict_, context);
}

void JobRun::EndWithout(const RunContext& context) {
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = "RESULTS_NOT_WRITTEN",
              .message = absl::StrCat(
                  log_.job().run_directory(), "/", common::ids::kSummaryFile,
                  " is not written, and maybe other results are "
                  "not: their disk has not taken them for ",
                  common::time::DurationText(context.now.monotonic - since_),
                  ". They follow when it does, unless the coordinator ends "
                  "before"),
              .step = log_.job().step()},
             context.now, context.actions);
  End(context);
}

void JobRun::Tick(const RunContext& context) {
  Blame(context);
  if (phase_ == Phase::kStepping) CheckProgress(context);
  if (over() || context.now.monotonic < deadline_) return;
  if (ExtendDeadline(context) || AwaitLease(context)) return;
  if (queued()) {
    KeepWaiting(context);
  } else if (phase_ == Phase::kStopping) {
    StopWithout(context);
  } else if (closing()) {
    EndWithout(context);
  } else {
    FailOverdue(context);
  }
}

MonotonicTime JobRun::NextTick() const {
  if (ending()) return deadline_;
  return std::min(deadline_, first_cause_.NextDeadline());
}

}  // namespace penstock::coordinator::dispatch
