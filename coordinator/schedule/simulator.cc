#include "coordinator/schedule/simulator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/memory_use.h"

namespace penstock::coordinator::schedule {
namespace {

// Walks back from the step that completes last, each time to what made it wait.
// Every time is a copy of the one that it waited for plus a duration, so the
// comparisons are exact.
class CriticalPath {
 public:
  CriticalPath(const Dataflow& flow, const Evaluation& evaluation)
      : flow_(flow), result_(evaluation) {}

  std::vector<CriticalItem> Find() && {
    int step = 0;
    for (int i = 1; i < flow_.step_count(); ++i) {
      if (result_.complete[i] > result_.complete[step]) step = i;
    }
    // A blocking send can be what makes the last step complete.
    if (const int out = flow_.message_out(step);
        out != kNone && result_.complete[step] > result_.end[step]) {
      step = BackOverMessage(out);
    }
    while (step != kNone) step = BackOverStep(step);
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  // Adds the step; returns the step before it on the path, or kNone.
  int BackOverStep(int step) {
    const double start = result_.start[step];
    path_.push_back({.rank = flow_.rank_of(step),
                     .position = flow_.position_of(step),
                     .edge = kNone,
                     .message = kNone,
                     .start = start,
                     .end = result_.end[step]});
    if (start <= 0) return kNone;
    if (const int in = flow_.message_in(step);
        in != kNone && result_.arrival[in] == start) {
      return BackOverMessage(in);
    }
    if (step > flow_.rank_begin(flow_.rank_of(step)) &&
        result_.complete[step - 1] == start) {
      return StepOrItsSend(step - 1);
    }
    const int out = flow_.message_out(step);
    return BackOverMessage(out -
                           flow_.send_buffers(flow_.messages()[out].edge));
  }

  // Adds the transfer; returns the step that it waited for.
  int BackOverMessage(int message) {
    const Message& m = flow_.messages()[message];
    const double begin = result_.begin[message];
    path_.push_back({.rank = flow_.rank_of(m.producer),
                     .position = flow_.position_of(m.producer),
                     .edge = m.edge,
                     .message = message - flow_.edge_begin(m.edge),
                     .start = begin,
                     .end = result_.arrival[message]});
    if (result_.end[m.producer] == begin) return m.producer;
    if (m.credit != kNone && result_.complete[m.credit] == begin) {
      return StepOrItsSend(m.credit);
    }
    return BackOverMessage(message - 1);  // Waited for the wire.
  }

  int StepOrItsSend(int step) {
    return result_.complete[step] > result_.end[step]
               ? BackOverMessage(flow_.message_out(step))
               : step;
  }

  const Dataflow& flow_;
  const Evaluation& result_;
  std::vector<CriticalItem> path_;
};

RankSimulation SimulateRank(const LoweredProgram& program, const Dataflow& flow,
                            const Evaluation& evaluation,
                            const Durations& durations, const Memory& memory,
                            const RankParts& parts, int rank) {
  RankSimulation result;
  bool any = false;
  for (int i = flow.rank_begin(rank); i < flow.rank_begin(rank + 1); ++i) {
    const LoweredStep& step = program.steps[rank][flow.position_of(i)];
    if (step.kind != StepKind::kCompute) continue;
    result.busy += durations.step[i];
    if (!any) result.first_start = evaluation.start[i];
    any = true;
    result.last_end = evaluation.end[i];
  }
  const MemoryUse use = MemoryUseOf(program, rank, parts, memory);
  result.peak_in_flight = use.peak_in_flight;
  result.peak_bytes = use.total();
  return result;
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const LoweredProgram& program,
                                    const Costs& costs, const Memory& memory) {
  RETURN_IF_ERROR(CheckCosts(costs, static_cast<int>(program.stages.size())));
  RETURN_IF_ERROR(CheckMemory(memory, static_cast<int>(program.stages.size()),
                              program.ranks()));
  ASSIGN_OR_RETURN(const Dataflow flow, Dataflow::Build(program));
  const Durations durations = DurationsOf(program, costs);
  const Evaluation evaluation = Evaluate(flow, durations);
  if (!evaluation.finished) {
    return absl::FailedPreconditionError(
        absl::StrCat(program.name, ": deadlock; ",
                     ExplainDeadlock(program, flow, evaluation).text));
  }
  Simulation simulation;
  simulation.makespan = evaluation.makespan;
  const std::vector<RankParts> parts = PartsOfRanks(program);
  double most_busy = 0;
  double largest_span_bubble = -1;
  for (int r = 0; r < program.ranks(); ++r) {
    const RankSimulation rank =
        SimulateRank(program, flow, evaluation, durations, memory, parts[r], r);
    most_busy = std::max(most_busy, rank.busy);
    const double span = rank.last_end - rank.first_start;
    if (const double bubble = span - rank.busy; bubble > largest_span_bubble) {
      largest_span_bubble = bubble;
      simulation.span_bubble_rate = span > 0 ? bubble / span : 0;
    }
    simulation.ranks.push_back(rank);
    std::vector<TimedStep>& timeline = simulation.timeline.emplace_back();
    for (int i = flow.rank_begin(r); i < flow.rank_begin(r + 1); ++i) {
      timeline.push_back({evaluation.start[i], evaluation.end[i]});
    }
  }
  if (simulation.makespan > 0) {
    simulation.bubble_rate =
        (simulation.makespan - most_busy) / simulation.makespan;
  }
  simulation.critical_path = CriticalPath(flow, evaluation).Find();
  return simulation;
}

}  // namespace penstock::coordinator::schedule
