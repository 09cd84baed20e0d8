// The automatic scheduler: the order with the least step, barrier included,
// for measured times and the memory that there is. docs/schedules.md, "auto".
//
// It tries every fixed schedule that has a meaning on the placement and fits,
// and searches for a better one (auto_search.h).
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SCHEDULE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SCHEDULE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Chunks a rank that are tried where nobody says how many.
inline constexpr int kChunksToTry = 2;

// The placements that are tried: loops of 1 to `most_chunks` chunks a rank and,
// where two are among them, the V.
std::vector<Placement> PlacementsToTry(int ranks, int most_chunks);

// One way to lay the stages on the ranks, and what they then take.
struct AutoChoice {
  Placement placement;
  // Costs (one entry a stage; none: unit times), memory with limits, tied,
  // replicas, send buffers. No uniform slots, no blocking sends.
  LoweringOptions options;
  // Refuses an order for what only the caller knows; null: takes all.
  std::function<absl::Status(const Schedule&)> accepts;
};

struct AutoSchedule {
  size_t choice = 0;       // Index of the choice.
  std::string order;       // What it is, for people: "zb-h2", "search".
  double makespan = 0;     // As Simulate has it.
  Schedule schedule;       // Its name is "auto".
  LoweredProgram program;  // Lowered and verified with the choice's options.
};

// The least step over all choices. Of equal ones the one that holds fewer
// activations, then the earlier choice, fixed schedules first. Deterministic:
// the work is bounded by counts, never by a clock.
//
// InvalidArgument: no choices, M or a placement without a meaning, options that
//   do not fit the placement.
// ResourceExhausted: no order meets the limits with any choice; names the rank
//   and the bytes missing, for the choice that misses least.
absl::StatusOr<AutoSchedule> MakeAutoSchedule(
    int micro_batches, absl::Span<const AutoChoice> choices);

// For stages of equal length, transfers that take no time and no memory limit,
// on the loop of that shape or, with two chunks, the V where that is better.
// Errors as the generators'.
absl::StatusOr<Schedule> GenerateAuto(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SCHEDULE_H_
