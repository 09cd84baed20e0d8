// What each rank of a lowered program holds, by its own order of commands:
// times do not matter, because a rank allocates and frees only in its steps.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_MEMORY_USE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_MEMORY_USE_H_

#include <cstdint>
#include <vector>

#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

struct MemoryUse {
  int peak_in_flight = 0;    // Activations from F to the end of B or W.
  int64_t peak_held = 0;     // Their bytes at one time,
  int peak_position = 0;     // first reached at this step.
  int in_flight_at_end = 0;  // Must be 0.
  // Bytes of all places for activations and inputs ahead, as Memory::places
  // says,
  int64_t activations = 0;
  int64_t transfers = 0;  // and of gradient slots and send buffers.
  int64_t total() const { return activations + transfers; }
};

// What of a program is one rank's. Edges by their numbers.
struct RankParts {
  std::vector<int> stages;
  std::vector<int> sends;
  std::vector<int> receives;
};
std::vector<RankParts> PartsOfRanks(const LoweredProgram& program);

// `parts` is the rank's of PartsOfRanks(). `memory.stages` may be empty: all
// sizes are then 0.
MemoryUse MemoryUseOf(const LoweredProgram& program, int rank,
                      const RankParts& parts, const Memory& memory);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_MEMORY_USE_H_
