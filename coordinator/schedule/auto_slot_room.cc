#include "coordinator/schedule/auto_slot_room.h"

#include <algorithm>

namespace penstock::coordinator::schedule {
namespace {

constexpr double kRung = 0.9;  // Of the one above it.

}  // namespace

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
    const int64_t ahead = options.memory.places == Places::kOwn
                              ? options.memory.of(s + 1).held_until_input
                              : slot.activation;
    upper += options.send_buffers * slot.gradient + more * ahead;
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

LoweringOptions OnRungBelow(const Placement& placement,
                            const LoweringOptions& options, int below) {
  LoweringOptions left = WithRoomForSlots(placement, options, 0);
  std::vector<int64_t> one(placement.ranks, 0);  // Bytes of a micro-batch:
  std::vector<int64_t> all(placement.ranks, 0);  // all that it ever has.
  for (int s = 0; s < placement.stages(); ++s) {
    const StageBytes bytes = options.memory.of(s);
    one[placement.rank_of(s)] += bytes.held_until_input;
    all[placement.rank_of(s)] +=
        std::max(bytes.held_until_input, bytes.held_until_weight);
  }
  double fitting = 0;  // Micro-batches beyond the first, on the rank with most.
  for (int r = 0; r < placement.ranks; ++r) {
    const auto room = static_cast<double>(left.memory.limits[r] - one[r]);
    if (all[r] > 0) fitting = std::max(fitting, room / all[r]);
  }
  if (fitting <= 0) return left;
  double rung = 1;
  while (rung <= fitting) rung /= kRung;
  while (rung > fitting) rung *= kRung;
  for (int i = 0; i < below; ++i) rung *= kRung;
  for (int r = 0; r < placement.ranks; ++r) {
    const double room = rung * static_cast<double>(all[r]);
    left.memory.limits[r] =
        std::min(left.memory.limits[r], one[r] + static_cast<int64_t>(room));
  }
  return left;
}

}  // namespace penstock::coordinator::schedule
