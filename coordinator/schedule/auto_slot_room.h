// How much of a rank's memory limit the automatic scheduler leaves for transfer
// slots and send buffers, which lowering counts once it knows the order.
// Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SLOT_ROOM_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SLOT_ROOM_H_

#include <cstdint>
#include <vector>

#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// Bytes of each rank's slots and send buffers, as MemoryUse::slots: the fewest
// that a lowered program has (no input ahead, one gradient) and `more` of each
// an edge.
std::vector<int64_t> SlotBytesOfRanks(const Placement& placement,
                                      const LoweringOptions& options, int more);

// The options with those bytes taken off the limits (which may become
// negative), if there are any.
LoweringOptions WithRoomForSlots(const Placement& placement,
                                 const LoweringOptions& options, int more);

// The options with room for activations cut to the `below`th rung beneath it of
// a ladder that is the same for all limits, each rung nine tenths of the one
// above: what is found on a rung is found again where there is more memory.
LoweringOptions OnRungBelow(const Placement& placement,
                            const LoweringOptions& options, int below);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SLOT_ROOM_H_
