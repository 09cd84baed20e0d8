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

// The loop and, of two chunks on several ranks, the V.
std::vector<Placement> PlacementsOf(const RankShape& shape);

// The placements that are tried for that shape, whose chunks are the most that
// may be tried: loops of 1 to 8 chunks, of 16, 32 and 64, and of the number
// allowed if it is below 64, and the V. Those with more than kMaxSearchedCells
// forwards a step are left out, but never the first.
//
// So the work is bounded: orders are searched for on each placement.
std::vector<Placement> PlacementsToTry(const Shape& shape);
inline constexpr int64_t kMaxSearchedCells = int64_t{1} << 17;

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
