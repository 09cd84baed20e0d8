// Proves a schedule before it runs: the nine invariants of docs/schedules.md.
// No plan, ours or a user's, runs without it.
//
//   1 every F, and B or both I and W, exactly once per stage and micro-batch;
//   2 data dependencies, within a rank and across ranks;
//   3 every stage on the rank that the placement says;
//   4 per edge, order of sends = order of receives;
//   5 no deadlock with rendezvous sends and the capacities that it will have;
//   6 weight gradients per stage in ascending micro-batch order;
//   7 each rank's bytes within its limit, in flight back to 0;
//   8 replica reduction after the last B or W of its stage, once;
//   9 the text form (text.h).
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_VERIFIER_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_VERIFIER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Checks all invariants; `options` as for Lower().
// InvalidArgument: the first violation, with rank, position and command, and
//   the grid of commands with the place marked as >0F3<; under 4 KiB.
// ResourceExhausted: more bytes than a rank's limit.
absl::Status Verify(const Schedule& schedule, const LoweringOptions& options);
// The same; returns the lowered program that was checked.
absl::StatusOr<LoweredProgram> LowerVerified(const Schedule& schedule,
                                             const LoweringOptions& options);

// The invariants that show in a lowered program: 4, 5, 7 and 8 and that every
// slot holds one message at a time. For programs that arrive from elsewhere.
absl::Status VerifyLowered(const LoweredProgram& program,
                           const Memory& memory = {});

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_VERIFIER_H_
