#include "coordinator/schedule/auto_least_memory.h"

#include <vector>

#include "coordinator/schedule/auto_slot_room.h"

namespace penstock::coordinator::schedule {

Orders Sequential(const AutoProblem& problem) {
  Orders orders(problem.ranks);
  for (int m = 0; m < problem.micro_batches; ++m) {
    for (int s = 0; s < problem.stages; ++s) {
      orders[problem.rank_of[s]].push_back({Op::kForward, s, m});
    }
    for (int s = problem.stages - 1; s >= 0; --s) {
      orders[problem.rank_of[s]].push_back({Op::kBackward, s, m});
    }
  }
  return orders;
}

Shortage LargestShortage(const Placement& placement,
                         const LoweringOptions& options) {
  Shortage largest{.limit = kNoBudget};
  if (options.memory.limits.empty()) return largest;
  const std::vector<int64_t> slots = SlotBytesOfRanks(placement, options, 0);
  std::vector<int64_t> held(placement.ranks, 0);
  for (int s = 0; s < placement.stages(); ++s) {
    held[placement.rank_of(s)] += options.memory.of(s).held_until_input;
  }
  for (int r = 0; r < placement.ranks; ++r) {
    const Shortage shortage{.rank = r,
                            .held = held[r],
                            .slots = slots[r],
                            .limit = options.memory.limits[r]};
    if (shortage.missing() > largest.missing()) largest = shortage;
  }
  return largest;
}

}  // namespace penstock::coordinator::schedule
