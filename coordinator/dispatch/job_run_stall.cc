// JobRun whose steps stand still: who keeps whom waiting, and when that is too
// long.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/rpc/cause.h"
#include "common/time/duration_text.h"
#include "coordinator/dispatch/deadlines.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/stall_report.h"

namespace penstock::coordinator::dispatch {

using v1::Job;
using v1::Occurrence;

std::string JobRun::MissingText() const {
  if (applied_.has_value()) {
    return absl::StrCat("the evaluation of step ", applied_->result.step);
  }
  std::vector<std::string> names;
  for (const int rank : barrier_->Missing()) {
    names.push_back(crew_.members[rank].name);
  }
  return absl::StrCat("step ", barrier_->applied() + 1, ": the ",
                      barrier_->released() > 0 ? "ack" : "report", " of ",
                      absl::StrJoin(names, ", "));
}

std::vector<RankStanding> JobRun::Standings(const RunContext& context) const {
  const schedule::Placement& placement = plan_->program.placement;
  std::vector<RankStanding> standings;
  for (const CrewMember& member : crew_.members) {
    RankStanding standing = {.name = member.name};
    if (const auto* entry = context.registry.Find(member.name);
        entry != nullptr) {
      standing.lost = entry->lost();
      standing.silent = context.now.monotonic - entry->last_contact;
      standing.command = entry->head_command;
      standing.told = context.now.monotonic - entry->last_heartbeat;
      standing.since = context.now.monotonic - entry->head_since;
      standing.awaited = entry->awaited;
    }
    standings.push_back(std::move(standing));
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::optional<v1::Edge>& edge = standings[rank].awaited;
    if (!edge.has_value()) continue;
    for (const int stage : {edge->source_stage(), edge->target_stage()}) {
      if (stage < 0 || stage >= placement.stages()) continue;
      if (const int peer = placement.rank_of(stage); peer != rank) {
        standings[rank].waits_for = peer;
      }
    }
  }
  std::vector<int> missing = barrier_->Missing();
  if (applied_.has_value()) {
    missing = {placement.rank_of(placement.stages() - 1)};
  }
  for (const int rank : missing) standings[rank].missing = true;
  return standings;
}

// Nothing moves: says so after a lease, gives up after stall_deadline.
void JobRun::CheckProgress(const RunContext& context) {
  for (const CrewMember& member : crew_.members) {
    const registry::StageEntry* entry = context.registry.Find(member.name);
    if (entry == nullptr || entry->queued_commands == 0) continue;
    if (entry->progress_since > moved_) {
      moved_ = entry->progress_since;
      stalled_ = false;
    }
  }
  const absl::Duration still = context.now.monotonic - moved_;
  const absl::Duration notice = context.options.registry.lease;
  const absl::Duration limit =
      StallDeadline(context.options, command_deadline_, slowest_step_);
  const bool over = still >= limit;
  if (over || (still >= notice && !stalled_)) {
    const StallReport report =
        ReportStall(Standings(context), 3 * context.options.registry.heartbeat);
    const std::string message = absl::StrCat(
        "nothing moved for ", common::time::DurationText(still), ": ",
        report.text, "; the barrier waits for ", MissingText());
    const std::string culprit =
        report.culprit < 0 ? "" : crew_.members[report.culprit].name;
    if (over) {
      Fail(Job::STATE_REASON_TRANSPORT_TIMEOUT,
           common::rpc::ToCause(absl::DeadlineExceededError(message), culprit),
           context);
      return;
    }
    stalled_ = true;
    log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
                .kind = "STALLED",
                .message = message,
                .stage_name = culprit,
                .step = log_.job().step()},
               context.now, context.actions);
  }
  deadline_ = stalled_ ? moved_ + limit : moved_ + notice;
}

}  // namespace penstock::coordinator::dispatch
