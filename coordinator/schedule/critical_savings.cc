#include "coordinator/schedule/critical_savings.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/dataflow.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr double kFaster = 0.99;

// What has one duration: equal for all that are scaled together.
using Key = std::tuple<int, StepKind, Op, int>;

Key KeyOf(const LoweredStep& step) {
  const Op op =
      step.kind == StepKind::kCompute ? step.command.op : Op::kForward;
  return {kNone, step.kind, op, step.command.stage};
}

Key KeyOf(const CriticalSaving& saving) {
  return {saving.edge, saving.kind, saving.op, saving.stage};
}

// The path's time by what takes it. An item lasts until the next begins:
// messages that wait for the wire overlap by the latency of the first.
std::vector<CriticalSaving> PartsOf(const LoweredProgram& program,
                                    const Simulation& simulation) {
  std::map<Key, CriticalSaving> parts;
  const std::vector<CriticalItem>& path = simulation.critical_path;
  for (size_t i = 0; i < path.size(); ++i) {
    const CriticalItem& item = path[i];
    const double until = i + 1 < path.size() ? path[i + 1].start : item.end;
    if (!(until > item.start)) continue;
    CriticalSaving part;
    if (item.edge != kNone) {
      part.edge = item.edge;
    } else {
      std::tie(part.edge, part.kind, part.op, part.stage) =
          KeyOf(program.steps[item.rank][item.position]);
    }
    CriticalSaving& sum = parts.emplace(KeyOf(part), part).first->second;
    ++sum.count;
    sum.on_path += until - item.start;
  }
  std::vector<CriticalSaving> result;
  for (auto& [key, part] : parts) {
    part.share = part.on_path / simulation.makespan;
    result.push_back(part);
  }
  return result;
}

// Makes the times of one part shorter, and long again.
class Faster {
 public:
  Faster(const LoweredProgram& program, Durations durations)
      : full_(std::move(durations)), now_(full_) {
    int i = 0;
    for (const std::vector<LoweredStep>& steps : program.steps) {
      for (const LoweredStep& step : steps) steps_[KeyOf(step)].push_back(i++);
    }
  }

  const Durations& With(const CriticalSaving& part) {
    Scale(part, kFaster);
    return now_;
  }
  void Without(const CriticalSaving& part) { Scale(part, 1); }

 private:
  void Scale(const CriticalSaving& part, double factor) {
    if (part.edge != kNone) {
      now_.wire[part.edge] = full_.wire[part.edge] * factor;
      now_.latency[part.edge] = full_.latency[part.edge] * factor;
      return;
    }
    for (const int i : steps_.at(KeyOf(part))) {
      now_.step[i] = full_.step[i] * factor;
    }
  }

  const Durations full_;
  Durations now_;
  std::map<Key, std::vector<int>> steps_;
};

}  // namespace

absl::StatusOr<std::vector<CriticalSaving>> CriticalSavings(
    const LoweredProgram& program, const Costs& costs,
    const Simulation& simulation, const SavingsOptions& options) {
  RETURN_IF_ERROR(CheckCosts(costs, static_cast<int>(program.stages.size())));
  ASSIGN_OR_RETURN(const Dataflow flow, Dataflow::Build(program));
  std::vector<CriticalSaving> parts = PartsOf(program, simulation);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const CriticalSaving& a, const CriticalSaving& b) {
                     return a.on_path > b.on_path;
                   });
  const int64_t affordable =
      options.most_steps / std::max(flow.step_count(), 1);
  const size_t computed =
      std::min(parts.size(), static_cast<size_t>(std::max<int64_t>(
                                 affordable, std::max(options.least, 0))));
  Faster faster(program, DurationsOf(program, costs));
  for (size_t i = 0; i < computed; ++i) {
    const double makespan = Evaluate(flow, faster.With(parts[i])).makespan;
    faster.Without(parts[i]);
    // Rounding can make a sum of smaller times the larger one.
    parts[i].saved = std::max(0.0, simulation.makespan - makespan);
  }
  std::stable_sort(parts.begin(), parts.begin() + computed,
                   [](const CriticalSaving& a, const CriticalSaving& b) {
                     return *a.saved > *b.saved;
                   });
  return parts;
}

std::string ToString(const LoweredProgram& program,
                     const CriticalSaving& saving) {
  if (saving.edge != kNone) return ToString(program.edges[saving.edge]);
  if (saving.kind != StepKind::kCompute) {
    LoweredStep step;
    step.kind = saving.kind;
    step.command.stage = saving.stage;
    return absl::StrCat(ToString(step), " of stage ", saving.stage);
  }
  return absl::StrCat(std::string(1, static_cast<char>(saving.op)),
                      " of stage ", saving.stage);
}

}  // namespace penstock::coordinator::schedule
