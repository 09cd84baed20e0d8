// How long a lowered program takes and what it holds: the rule of
// lowered_program.h evaluated for given times. Exact, deterministic, one pass.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_SIMULATOR_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_SIMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// When a step ran; the difference is its operation's time.
struct TimedStep {
  double start = 0;
  double end = 0;
};

struct RankSimulation {
  double busy = 0;         // Sum of the times of its commands.
  double first_start = 0;  // Of its first command.
  double last_end = 0;     // Of its last command.
  int peak_in_flight = 0;  // Activations, F to B or W, over its stages.
  // As Memory counts, slots and buffers included: with own places what is
  // allocated, whether it is held at one time or not.
  int64_t peak_bytes = 0;
};

// A link of the chain that makes the makespan: a step (edge = kNone) or the
// transfer of a message.
struct CriticalItem {
  int rank = kNone;  // Of the step, or the message's sender.
  int position = kNone;
  int edge = kNone;
  int message = kNone;
  double start = 0;
  double end = 0;
};

struct Simulation {
  double makespan = 0;  // Until the last rank reaches the barrier.
  // Idle share of the busiest rank: (makespan - busy) / makespan.
  double bubble_rate = 0;
  // Largest over ranks of (last end - first start - busy), as a share of that
  // rank's (last end - first start). Slots that cost nothing keep it
  // (capacity.cc, which has it as a time).
  double span_bubble_rate = 0;
  std::vector<RankSimulation> ranks;
  std::vector<std::vector<TimedStep>> timeline;  // As LoweredProgram::steps.
  std::vector<CriticalItem> critical_path;       // In time order.
};

// `costs` must have one entry a stage. `memory` may be default.
// FailedPrecondition: the program deadlocks; the message is the cycle.
// InvalidArgument: sizes that do not fit the program.
absl::StatusOr<Simulation> Simulate(const LoweredProgram& program,
                                    const Costs& costs,
                                    const Memory& memory = {});

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_SIMULATOR_H_
