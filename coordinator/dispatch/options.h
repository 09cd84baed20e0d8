// Settings of the coordinator's core: the deadlines of docs/ARCHITECTURE.md and
// what identifies this process. Filled in by coordinator/coordinator.cc.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_OPTIONS_H_
#define PENSTOCK_COORDINATOR_DISPATCH_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/ids/random.h"
#include "coordinator/registry/registry.h"
#include "penstock/v1/common.pb.h"

namespace penstock::coordinator::dispatch {

struct Options {
  registry::Options registry;
  // Grows by one at each start of the coordinator, durably (state_folder.h).
  int64_t term = 1;
  v1::BuildInfo build;
  // Of the coordinator's machine, as stages tell of theirs.
  std::string host;
  // For job ids and the secrets of epochs. REQUIRED: the core has none of its
  // own.
  common::ids::RandomSource random;
  // Results of jobs that name no folder go to STATE/jobs/ID.
  std::string state_directory;

  // Jobs that have ended, of which it is still told: those that ended last.
  size_t ended_jobs_kept = 1000;

  // Steps whose commands are sent ahead of the newest committed one.
  int window = 2;
  // A stage that neither answers CheckInputs nor reads on (its heartbeats say)
  // for this long has not seen its inputs. Large data take as long as they
  // take.
  absl::Duration check_inputs_deadline = absl::Seconds(10);
  // A plan takes seconds of a core, and waits for those of other jobs.
  absl::Duration planning_deadline = absl::Minutes(5);
  // No stage of a job that is assembled reads on or becomes ready for this
  // long: the job fails.
  absl::Duration assembly_stall_deadline = absl::Seconds(120);
  // An assembly in all: weights, memory, channels.
  absl::Duration assembly_deadline = absl::Minutes(30);
  // A command at the head of a stage's queue for this long is a failure; longer
  // where commands honestly take longer (deadlines.h).
  absl::Duration command_deadline = absl::Seconds(120);
  // No stage of a running job starts a command or reports for this long; as
  // above. Longer than command_deadline, whose error says more.
  absl::Duration stall_deadline = absl::Seconds(180);
  // No stage hashes or writes a tensor of the trained model, or has its shard
  // durable, for this long; then, the model's folder gets its name.
  absl::Duration end_deadline = absl::Minutes(10);
  // A job's last results are not written for this long: its end is told without
  // them.
  absl::Duration results_deadline = absl::Seconds(10);
  // A broken session and a broken edge (or a refused monitor port) this close
  // together are one lost stage; a broken edge alone waits this long for a
  // better cause.
  absl::Duration cause_window = absl::Milliseconds(200);
  // For stages to say that they dropped a job that failed, or was cancelled.
  absl::Duration abort_deadline = absl::Seconds(2);
  absl::Duration cancel_deadline = absl::Seconds(10);
  // How often a job that waits for stages says so.
  absl::Duration waiting_notice = absl::Seconds(30);
  // A job that has waited for stages for this long fails with NO_STAGES.
  absl::Duration queue_deadline = absl::InfiniteDuration();
  // Whether the stages are the children of one `penstock run`: whoever ends or
  // is refused does not come back, and a job that waits for it fails.
  bool fixed_stages = false;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_OPTIONS_H_
