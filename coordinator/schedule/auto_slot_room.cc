#include "coordinator/schedule/auto_slot_room.h"

namespace penstock::coordinator::schedule {

std::vector<int64_t> SlotBytesOfRanks(const Placement& placement,
                                      const LoweringOptions& options,
                                      int more) {
  const MessageBytes& slot = options.memory.slot;
  const int last = placement.stages() - 1;
  std::vector<int64_t> bytes(placement.ranks, 0);
  for (int s = 0; s < last; ++s) {
    int64_t& lower = bytes[placement.rank_of(s)];
    int64_t& upper = bytes[placement.rank_of(s + 1)];
    // The gradient's slots, of the edge or of the hand-over on one rank.
    lower += (1 + more) * slot.gradient;
    if (placement.same_rank(s, s + 1)) continue;
    lower += options.send_buffers * slot.activation;
    upper += options.send_buffers * slot.gradient + more * slot.activation;
  }
  if (options.tied_embedding && last > 0 && !placement.same_rank(0, last)) {
    // One message each way: a send buffer here and a slot there.
    bytes[placement.rank_of(0)] += 2 * slot.tied;
    bytes[placement.rank_of(last)] += 2 * slot.tied;
  }
  return bytes;
}

LoweringOptions WithRoomForSlots(const Placement& placement,
                                 const LoweringOptions& options, int more) {
  LoweringOptions left = options;
  if (left.memory.limits.empty()) return left;
  const std::vector<int64_t> bytes = SlotBytesOfRanks(placement, options, more);
  for (int r = 0; r < placement.ranks; ++r) left.memory.limits[r] -= bytes[r];
  return left;
}

}  // namespace penstock::coordinator::schedule
