// Schedule -> LoweredProgram: adds messages, slots, send buffers, tied edges,
// replica reductions and the barrier. The execution rule that executor,
// verifier and simulator share is written in lowered_program.h.
//
// Capacities (docs/schedules.md): the step is first timed with unlimited slots.
// Each edge then gets what keeps every message on time in that step, taking
// into account that a message may arrive as late as its consumer or the reuse
// of its send buffer needs it; last, all are cut to the least common bound at
// which the step still takes no longer, further only by a rank's memory limit,
// and never to where the step would deadlock.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_LOWERING_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_LOWERING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

struct LoweringOptions {
  // Whether head and embedding share their weight. Edges are made only when
  // they are on different ranks.
  bool tied_embedding = false;
  // Whether there are replicas to reduce gradients with (R > 1).
  bool reduce_replicas = false;
  // An edge, at most one a message; 0: blocking sends (study only).
  int send_buffers = 1;
  // Instead of computed capacities: this many slots on every edge (at most one
  // a message), activation edges too, which then have slots of their own beside
  // the stash.
  std::optional<int> uniform_slots = std::nullopt;
  // Used to compute capacities. No stages: unit times (F = I = W = 1/v).
  Costs costs;
  Memory memory;
};

// Lowers `schedule` after CheckOrder. Cost: a few passes over its commands, and
// up to 64 more where forwards do not ascend (slot_count.h).
//
// InvalidArgument: CheckOrder's violations; a deadlock with uniform_slots,
//   printed as the cycle of who waits for whom; options of the wrong size.
// ResourceExhausted: a rank's memory limit leaves no capacities that are free
//   of deadlock; names the rank and the bytes missing.
absl::StatusOr<LoweredProgram> Lower(const Schedule& schedule,
                                     const LoweringOptions& options);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_LOWERING_H_
