// The order that needs the least memory, for where no other fits and to say
// how much is missing where none does. Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LEAST_MEMORY_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LEAST_MEMORY_H_

#include <cstdint>

#include "coordinator/schedule/auto_problem.h"
#include "coordinator/schedule/lowering.h"

namespace penstock::coordinator::schedule {

// One micro-batch after the other: all its F, then all its B. Every order holds
// at least as much on each rank: the activations of one micro-batch on all of
// the rank's stages.
Orders Sequential(const AutoProblem& problem);

// The rank whose limit is missed by most.
struct Shortage {
  int rank = 0;
  int64_t held = 0;   // Bytes of activations of one micro-batch.
  int64_t slots = 0;  // Bytes of the fewest slots and send buffers.
  int64_t limit = 0;
  int64_t missing() const { return held + slots - limit; }  // <= 0: it fits.
};
Shortage LargestShortage(const Placement& placement,
                         const LoweringOptions& options);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LEAST_MEMORY_H_
