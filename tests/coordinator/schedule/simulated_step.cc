#include "tests/coordinator/schedule/simulated_step.h"

#include <algorithm>
#include <utility>

#include "common/status/status_macros.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::schedule {

double SimulatedStep::span_bubble() const {
  double most = 0;
  for (const RankSimulation& rank : simulation.ranks) {
    most = std::max(most, rank.last_end - rank.first_start - rank.busy);
  }
  return most;
}

absl::StatusOr<SimulatedStep> SimulateStep(const Schedule& schedule,
                                           const RankTimes& times) {
  LoweringOptions options;
  options.costs = UniformCosts(schedule.rank_shape(), times);
  ASSIGN_OR_RETURN(LoweredProgram program, LowerVerified(schedule, options));
  ASSIGN_OR_RETURN(Simulation simulation, Simulate(program, options.costs));
  return SimulatedStep{schedule, std::move(program), std::move(simulation)};
}

}  // namespace penstock::coordinator::schedule
