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

enum class SlotRoom {
  kFewest,  // What every lowered program has: no input ahead, one gradient.
  kAmple,   // One more of each, with which most orders lose no time.
};

// Bytes of each rank's slots and send buffers: as MemoryUse::slots.
std::vector<int64_t> SlotBytesOfRanks(const Placement& placement,
                                      const LoweringOptions& options,
                                      SlotRoom room);

// The options with those bytes taken off the limits (which may become
// negative), if there are any.
LoweringOptions WithRoomForSlots(const Placement& placement,
                                 const LoweringOptions& options, SlotRoom room);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SLOT_ROOM_H_
