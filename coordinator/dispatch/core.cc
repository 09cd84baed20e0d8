// Core from event to event, its jobs' files and plans, and time.
#include "coordinator/dispatch/core.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "coordinator/dispatch/core_state.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/registry/registry.h"

namespace penstock::coordinator::dispatch {

using common::time::MonotonicTime;

void Core::State::NoticePause(const Now& now, Actions& actions) {
  const absl::Duration gap =
      last_tick.has_value() ? now.monotonic - *last_tick : absl::ZeroDuration();
  last_tick = now.monotonic;
  // It was due a heartbeat after the one before, at the latest (NextTick).
  const absl::Duration late = gap - options.registry.heartbeat;
  if (late < options.registry.lease / 4) return;
  registry.Forgive(gap, now.monotonic);
  for (const auto& run : runs) {
    if (!run->over()) run->Forgive(gap, Context(now, actions));
  }
}

void Core::State::Settle(const Now& now, Actions& actions) {
  if (gone.has_value()) {
    for (const auto& run : runs) {
      if (run->queued()) run->StageGone(*gone, Context(now, actions));
    }
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [](const auto& run) { return run->over(); }),
             runs.end());
  for (const v1::Job& job : store.ForgetEnded(options.ended_jobs_kept)) {
    actions.push_back(
        ForgetJob{.job_id = job.id(), .directory = job.run_directory()});
  }
  // In order; a job that must wait keeps the later ones of its pool waiting,
  // or small jobs would starve it.
  std::vector<std::string> blocked;
  for (const auto& run : runs) {
    if (!run->queued()) continue;
    const std::string& pool = run->spec().scheduling.pool;
    if (std::find(blocked.begin(), blocked.end(), pool) != blocked.end()) {
      continue;
    }
    if (!run->TryStart(Context(now, actions))) blocked.push_back(pool);
  }
}

Core::Core(const Options& options, jobs::JobStore& store)
    : state_(std::make_unique<State>(options, store)) {
  CHECK(options.random != nullptr) << "a core needs a source of random numbers";
}

Core::~Core() = default;

// --- Jobs' files and plans.

void Core::WriteFailed(absl::string_view job_id, const absl::Status& status,
                       const Now& now, Actions& actions) {
  State& s = *state_;
  if (JobRun* run = s.FindRun(job_id); run != nullptr) {
    run->WriteFailed(status, s.Context(now, actions));
  }
  s.Settle(now, actions);
}

void Core::LinesLost(absl::string_view job_id, absl::string_view file,
                     const Now& now, Actions& actions) {
  State& s = *state_;
  if (JobRun* run = s.FindRun(job_id); run != nullptr) {
    run->LinesLost(file, s.Context(now, actions));
  }
}

void Core::FolderChanged(const dispatch::FolderChanged& done, const Now& now,
                         Actions& actions) {
  State& s = *state_;
  if (JobRun* run = s.FindRun(done.job_id); run != nullptr) {
    run->FolderChanged(done, s.Context(now, actions));
  }
  s.Settle(now, actions);
}

void Core::PlanMade(dispatch::PlanMade made, const Now& now, Actions& actions) {
  State& s = *state_;
  if (JobRun* run = s.FindRun(made.job_id); run != nullptr) {
    run->PlanMade(std::move(made.plan), s.Context(now, actions));
  }
  s.Settle(now, actions);
}

// --- Time.

void Core::Tick(const Now& now, Actions& actions) {
  State& s = *state_;
  s.NoticePause(now, actions);
  for (const registry::Loss& lost : s.registry.Expire(now.monotonic)) {
    s.TellLost(lost, now, actions);
  }
  for (size_t i = 0; i < s.runs.size(); ++i) {
    if (!s.runs[i]->over()) s.runs[i]->Tick(s.Context(now, actions));
  }
  s.Settle(now, actions);
  // Last: a job that has not ended finds every stage of its crew.
  s.registry.ForgetLost([&s](absl::string_view name) {
    return std::any_of(s.runs.begin(), s.runs.end(),
                       [name](const auto& run) { return run->Has(name); });
  });
}

MonotonicTime Core::NextTick() const {
  if (!state_->last_tick.has_value()) return MonotonicTime();
  MonotonicTime next =
      std::min(*state_->last_tick + state_->options.registry.heartbeat,
               state_->registry.NextExpiry());
  for (const auto& run : state_->runs) next = std::min(next, run->NextTick());
  return next;
}

}  // namespace penstock::coordinator::dispatch
