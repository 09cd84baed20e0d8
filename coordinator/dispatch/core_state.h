// The core's members, shared by core.cc (files, plans, time), core_stages.cc
// and core_jobs.cc (jobs, reads).
#ifndef PENSTOCK_COORDINATOR_DISPATCH_CORE_STATE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_CORE_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/stage_links.h"
#include "coordinator/jobs/job_store.h"
#include "coordinator/registry/registry.h"

namespace penstock::coordinator::dispatch {

// Thread-compatible.
struct Core::State {
  State(const Options& given, jobs::JobStore& job_store)
      : options(given),
        store(job_store),
        registry(given.registry),
        links(given.term, registry) {}

  RunContext Context(const Now& now, Actions& actions) {
    return {.options = options,
            .registry = registry,
            .links = links,
            .epoch = epoch,
            .now = now,
            .actions = actions};
  }
  // The run that the stage works for, or nullptr. Of a LOST stage: the run
  // that still waits for its end.
  JobRun* RunOf(absl::string_view stage) {
    const registry::StageEntry* entry = registry.Find(stage);
    const bool alive = entry != nullptr && !entry->lost();
    for (const auto& run : runs) {
      if (run->closing()) continue;
      if (alive ? run->job().id() == entry->job_id : run->Has(stage)) {
        return run.get();
      }
    }
    return nullptr;
  }
  JobRun* FindRun(absl::string_view job_id) {
    for (const auto& run : runs) {
      if (run->job().id() == job_id) return run.get();
    }
    return nullptr;
  }

  // After every event: forgets what is over, starts what can start.
  void Settle(const Now& now, Actions& actions);
  // A stage that was alive is LOST from now on. No-op for one that is LOST
  // already, or unknown.
  void LoseStage(absl::string_view stage, const v1::Cause& cause,
                 const Now& now, Actions& actions) {
    if (const auto lost = registry.MarkLost(stage, cause); lost.has_value()) {
      TellLost(*lost, now, actions);
    }
  }
  // The registry has marked it: its link ends, and its job hears of it.
  void TellLost(const registry::Loss& lost, const Now& now, Actions& actions);
  absl::StatusOr<v1::Job> MakeJob(const PlannedJob& planned, const Now& now);
  // Notices that the coordinator itself did not run, since its last tick.
  void NoticePause(const Now& now, Actions& actions);
  // With fixed_stages: a stage without a job will never have one. The first
  // cause stays.
  void Gone(const v1::Cause& cause) {
    if (options.fixed_stages && !gone.has_value()) gone = cause;
  }

  const Options options;
  jobs::JobStore& store;
  registry::Registry registry;
  StageLinks links;
  int64_t epoch = 0;
  std::vector<std::unique_ptr<JobRun>> runs;  // In order of creation.
  std::optional<v1::Cause> gone;
  bool closing = false;  // No more jobs.
  std::optional<common::time::MonotonicTime> last_tick;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_CORE_STATE_H_
