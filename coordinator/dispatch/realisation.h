// A step as the schedule promises it: simulated with what its operations were
// measured to take. summary.json says how much of it was realised,
// predicted.json holds its timeline. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_REALISATION_H_
#define PENSTOCK_COORDINATOR_DISPATCH_REALISATION_H_

#include <optional>
#include <string>

#include "coordinator/planner/plan.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/simulator.h"

namespace penstock::coordinator::dispatch {

struct SimulatedStep {
  schedule::Simulation simulation;  // Seconds.
  double measured_seconds = 0;      // The median step's time, above 0.

  double realisation() const { return simulation.makespan / measured_seconds; }
};

// With the medians of each stage's operations and of the step as Accounting has
// them, and the plan's transfers (of the virtual device; else they take no
// time). Nothing for a step that took no time.
std::optional<SimulatedStep> SimulateAsMeasured(const planner::Plan& plan,
                                                schedule::Costs costs,
                                                double step_seconds);

// predicted.json, the keys of docs/operations.md; a line a rank. `program` is
// the one that was simulated.
std::string PredictedTimeline(const schedule::LoweredProgram& program,
                              const SimulatedStep& step);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_REALISATION_H_
