// Verifies, lowers and simulates a schedule, for tests of what it costs.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_SIMULATED_STEP_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_SIMULATED_STEP_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/schedule.h"
#include "coordinator/schedule/simulator.h"

namespace penstock::coordinator::schedule {

struct SimulatedStep {
  Schedule schedule;
  LoweredProgram program;
  Simulation simulation;

  double makespan() const { return simulation.makespan; }
  // Over ranks, the most of (last end - first start - busy).
  double span_bubble() const;
};

// With the capacities that are computed for `times`.
absl::StatusOr<SimulatedStep> SimulateStep(const Schedule& schedule,
                                           const RankTimes& times = {});

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_SIMULATED_STEP_H_
