#include "coordinator/dispatch/realisation.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace penstock::coordinator::dispatch {
namespace {

using nlohmann::ordered_json;

// To the nanosecond, as times are measured. Divided, not multiplied: that gives
// the number that is written with nine digits behind the point.
double Rounded(double seconds) { return std::round(seconds * 1e9) / 1e9; }

// [["0F0", start, end], ...]
ordered_json Commands(const schedule::LoweredProgram& program,
                      const schedule::Simulation& simulation, int rank) {
  ordered_json commands = ordered_json::array();
  for (size_t i = 0; i < program.steps[rank].size(); ++i) {
    const schedule::LoweredStep& step = program.steps[rank][i];
    if (step.kind != schedule::StepKind::kCompute) continue;
    const schedule::TimedStep& timed = simulation.timeline[rank][i];
    commands.push_back({schedule::ToString(step.command), Rounded(timed.start),
                        Rounded(timed.end)});
  }
  return commands;
}

}  // namespace

std::optional<SimulatedStep> SimulateAsMeasured(const planner::Plan& plan,
                                                schedule::Costs costs,
                                                double step_seconds) {
  if (step_seconds <= 0) return std::nullopt;
  // Transfers are not measured; they take time where that is modelled.
  costs.latency = plan.costs.latency;
  costs.seconds_per_byte = plan.costs.seconds_per_byte;
  costs.bytes = plan.costs.bytes;
  auto simulation = schedule::Simulate(plan.program, costs);
  if (!simulation.ok()) return std::nullopt;
  return SimulatedStep{.simulation = *std::move(simulation),
                       .measured_seconds = step_seconds};
}

std::string PredictedTimeline(const schedule::LoweredProgram& program,
                              const SimulatedStep& step) {
  const schedule::Simulation& simulation = step.simulation;
  const ordered_json head = {
      {"step_seconds", Rounded(simulation.makespan)},
      {"measured_step_seconds", Rounded(step.measured_seconds)},
      {"realisation", step.realisation()},
      {"bubble_rate", simulation.bubble_rate},
      {"span_bubble_rate", simulation.span_bubble_rate}};
  std::vector<std::string> ranks;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    ranks.push_back(
        ordered_json{{"rank", rank},
                     {"busy_seconds", Rounded(simulation.ranks[rank].busy)},
                     {"commands", Commands(program, simulation, rank)}}
            .dump());
  }
  std::string text = head.dump();
  text.pop_back();  // Its closing brace.
  return absl::StrCat(text, ",\"ranks\":[\n", absl::StrJoin(ranks, ",\n"),
                      "\n]}\n");
}

}  // namespace penstock::coordinator::dispatch
