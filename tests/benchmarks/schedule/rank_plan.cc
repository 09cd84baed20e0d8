#include "tests/benchmarks/schedule/rank_plan.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/text.h"

namespace penstock::benchmarks::schedule {
namespace {

using coordinator::schedule::Costs;
using coordinator::schedule::Dataflow;
using coordinator::schedule::Edge;
using coordinator::schedule::LoweredProgram;
using coordinator::schedule::LoweredStep;
using coordinator::schedule::Message;
using coordinator::schedule::Schedule;
using coordinator::schedule::StepKind;

absl::StatusOr<Schedule> ScheduleOf(const PlanOptions& options) {
  absl::string_view path = options.schedule;
  if (!absl::ConsumePrefix(&path, "file:")) {
    return coordinator::schedule::Generate(options.schedule, options.shape);
  }
  std::ifstream file{std::string(path)};
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return coordinator::schedule::ParseCsv(
      text, {.ranks = options.shape.ranks,
             .micro_batches = options.shape.micro_batches,
             .chunks = options.shape.chunks,
             .name = std::string(path)});
}

// One rank's share of `program`.
class RankPlanner {
 public:
  RankPlanner(const LoweredProgram& program, const Dataflow& flow,
              const Costs& costs, int rank)
      : program_(program), flow_(flow), costs_(costs), rank_(rank) {}

  RankPlan Plan() && {
    for (size_t i = 0; i < program_.edges.size(); ++i) {
      const Edge& edge = program_.edges[i];
      const bool sends = edge.source_rank == rank_;
      if (!sends && edge.target_rank != rank_) continue;
      end_of_[i] = plan_.edges.size();
      plan_.edges.push_back(
          {.id = static_cast<int>(i),
           .peer = sends ? edge.target_rank : edge.source_rank,
           .sends = sends,
           .messages = edge.messages});
    }
    // Without the barrier, a rank's last step.
    for (size_t i = 0; i + 1 < program_.steps[rank_].size(); ++i) AddOp(i);
    for (const auto& [id, end] : end_of_) {
      if (!plan_.edges[end].sends) AddCredits(id, end);
    }
    return std::move(plan_);
  }

 private:
  void AddOp(int position) {
    const LoweredStep& step = program_.steps[rank_][position];
    PlannedOp op;
    op.nanoseconds = std::llround(
        1e9 * costs_.stages[step.command.stage].of(step.command.op));
    if (step.receive_edge != kNone) {
      op.input = end_of_.at(step.receive_edge);
      op.input_message = step.receive_message;
    }
    if (step.send_edge != kNone) {
      op.output = end_of_.at(step.send_edge);
      op.awaited_ack =
          step.send_message - program_.edges[step.send_edge].send_buffers;
    }
    plan_.ops.push_back(op);
  }

  // Credits go out in the order of the messages.
  void AddCredits(int edge, int end) {
    int latest = kNone;  // Position.
    for (int j = 0; j < program_.edges[edge].messages; ++j) {
      const Message& message = flow_.messages()[flow_.edge_begin(edge) + j];
      if (message.credit != kNone) {
        latest = std::max(latest, flow_.position_of(message.credit));
      }
      if (latest == kNone) {
        ++plan_.edges[end].first_credits;
      } else {
        plan_.ops[latest].credits.push_back(end);
      }
    }
  }

  const LoweredProgram& program_;
  const Dataflow& flow_;
  const Costs& costs_;
  const int rank_;
  RankPlan plan_;
  std::map<int, int> end_of_;  // Of an edge: its place in plan_.edges.
};

}  // namespace

absl::StatusOr<PipelinePlan> MakePipelinePlan(const PlanOptions& options) {
  ASSIGN_OR_RETURN(const Schedule schedule, ScheduleOf(options));
  const Costs costs =
      coordinator::schedule::UniformCosts(schedule.rank_shape(), options.times);
  ASSIGN_OR_RETURN(const LoweredProgram program,
                   coordinator::schedule::Lower(schedule, {.costs = costs}));
  ASSIGN_OR_RETURN(const Dataflow flow, Dataflow::Build(program));
  PipelinePlan plan{.schedule = schedule.name,
                    .ranks = schedule.ranks(),
                    .micro_batches = schedule.micro_batches};
  ASSIGN_OR_RETURN(plan.simulated,
                   coordinator::schedule::Simulate(program, costs));
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    plan.rank_plans.push_back(RankPlanner(program, flow, costs, rank).Plan());
  }
  return plan;
}

}  // namespace penstock::benchmarks::schedule
