// What would make a step shorter: the parts of its critical path, and what the
// makespan would lose if each were a little faster. A function of its own, so
// that Simulate stays one pass.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_CRITICAL_SAVINGS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_CRITICAL_SAVINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/simulator.h"

namespace penstock::coordinator::schedule {

// All operations of one kind of one stage, or all transfers of one edge.
struct CriticalSaving {
  int edge = kNone;  // LoweredProgram::edges; kNone: operations.
  StepKind kind = StepKind::kCompute;  // Or kTiedReduce.
  Op op = Op::kForward;                // Of kCompute.
  int stage = kNone;

  int count = 0;       // How many of them are on the path.
  double on_path = 0;  // Their time there; a message's wait for the wire and
                       // its latency count as far as nothing later overlaps.
  double share = 0;    // on_path / makespan; all shares add up to 1.
  // What the makespan loses when all of them, on the path or not, take 1 %
  // less: exactly, every time computed anew. At most 1 % of on_path, and less
  // where another path then is the longest. Nothing where it was not computed.
  std::optional<double> saved;
};

struct SavingsOptions {
  // Each saving computed costs one evaluation of all steps of the program.
  // Those longest on the path are computed while this many steps last, but
  // at least `least` of them. The default is about a tenth of a second.
  int64_t most_steps = 4'000'000;
  int least = 4;
};

// The parts of `simulation`'s critical path that take time: those computed
// first, the largest saving first, then the others by their time on the path.
// What is not in the list saves nothing: the path would be as long as before.
//
// REQUIRES: `simulation` is Simulate(program, costs).
// InvalidArgument: costs that do not fit the program.
absl::StatusOr<std::vector<CriticalSaving>> CriticalSavings(
    const LoweredProgram& program, const Costs& costs,
    const Simulation& simulation, const SavingsOptions& options = {});

// "F of stage 3", "activation 2->3".
std::string ToString(const LoweredProgram& program,
                     const CriticalSaving& saving);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_CRITICAL_SAVINGS_H_
