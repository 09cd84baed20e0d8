#include "coordinator/schedule/lowering.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/capacity.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/grid.h"
#include "coordinator/schedule/memory_use.h"
#include "coordinator/schedule/order_check.h"
#include "coordinator/schedule/slot_numbers.h"

namespace penstock::coordinator::schedule {
namespace {

absl::Status CheckOptions(const Schedule& schedule,
                          const LoweringOptions& options) {
  if (options.send_buffers < 0 || options.uniform_slots.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        "lowering: send buffers and slots must be at least 0");
  }
  if (!options.costs.stages.empty()) {
    RETURN_IF_ERROR(CheckCosts(options.costs, schedule.stages()));
  }
  return CheckMemory(options.memory, schedule.stages(), schedule.ranks());
}

// Turns one schedule into steps and edges, slots left open.
class Lowerer {
 public:
  Lowerer(const Schedule& schedule, const LoweringOptions& options)
      : schedule_(schedule), options_(options) {
    program_.name = schedule.name;
    program_.placement = schedule.placement;
    program_.micro_batches = schedule.micro_batches;
    program_.steps.resize(schedule.ranks());
    program_.stages.resize(schedule.stages());
    left_.assign(schedule.stages(), schedule.micro_batches);
  }

  LoweredProgram Run() && {
    MakeEdges();
    for (int r = 0; r < schedule_.ranks(); ++r) LowerRank(r);
    return std::move(program_);
  }

 private:
  int head() const { return schedule_.stages() - 1; }
  bool tied() const { return options_.tied_embedding && head() > 0; }
  bool tied_edges() const {
    return tied() && !schedule_.placement.same_rank(0, head());
  }

  int AddEdge(EdgeKind kind, int source, int target, int messages) {
    program_.edges.push_back(
        {.kind = kind,
         .source_stage = source,
         .target_stage = target,
         .source_rank = schedule_.placement.rank_of(source),
         .target_rank = schedule_.placement.rank_of(target),
         .capacity = std::min(options_.uniform_slots.value_or(1), messages),
         .send_buffers = std::min(options_.send_buffers, messages),
         .lands_in_stash = kind == EdgeKind::kActivation &&
                           !options_.uniform_slots.has_value(),
         .messages = messages});
    return static_cast<int>(program_.edges.size()) - 1;
  }

  void MakeEdges() {
    const int stages = schedule_.stages();
    activation_into_.assign(stages, kNone);
    gradient_into_.assign(stages, kNone);
    for (int s = 0; s + 1 < stages; ++s) {
      if (schedule_.placement.same_rank(s, s + 1)) continue;
      activation_into_[s + 1] =
          AddEdge(EdgeKind::kActivation, s, s + 1, schedule_.micro_batches);
      gradient_into_[s] =
          AddEdge(EdgeKind::kGradient, s + 1, s, schedule_.micro_batches);
    }
    if (tied_edges()) {
      tied_gradient_ = AddEdge(EdgeKind::kTiedGradient, head(), 0, 1);
      tied_sum_ = AddEdge(EdgeKind::kTiedSum, 0, head(), 1);
      // A tied slot is a buffer of its own; the study option is for the others.
      for (const int e : {tied_gradient_, tied_sum_}) {
        program_.edges[e].capacity = 1;
        program_.edges[e].send_buffers = 1;
      }
    }
    sent_.assign(program_.edges.size(), 0);
    taken_.assign(program_.edges.size(), 0);
  }

  void Receive(LoweredStep* step, int edge) {
    step->receive_edge = edge;
    if (edge != kNone) step->receive_message = taken_[edge]++;
  }
  void Send(LoweredStep* step, int edge) {
    step->send_edge = edge;
    if (edge != kNone) step->send_message = sent_[edge]++;
  }

  void LowerRank(int rank) {
    std::vector<LoweredStep>& steps = program_.steps[rank];
    for (const Command& c : schedule_.orders[rank]) {
      LoweredStep step{.kind = StepKind::kCompute, .command = c};
      if (c.op == Op::kForward) {
        Receive(&step, activation_into_[c.stage]);
        Send(&step, c.stage < head() ? activation_into_[c.stage + 1] : kNone);
      } else if (ProducesInputGradient(c.op)) {
        Receive(&step, gradient_into_[c.stage]);
        Send(&step, c.stage > 0 ? gradient_into_[c.stage - 1] : kNone);
      }
      steps.push_back(step);
      if (ProducesWeightGradient(c.op) && --left_[c.stage] == 0) {
        FinishStage(c.stage, &steps);
      }
    }
    if (tied_edges() && schedule_.placement.rank_of(head()) == rank) {
      LoweredStep step = Other(StepKind::kTiedReceive, head());
      Receive(&step, tied_sum_);
      steps.push_back(step);
      Reduce(head(), &steps);
    }
    steps.push_back(Other(StepKind::kBarrier, 0));
  }

  // What follows the last weight gradient of `stage`. A tied weight is summed
  // over embedding and head before it is reduced over replicas.
  void FinishStage(int stage, std::vector<LoweredStep>* steps) {
    if (tied_edges() && stage == head()) {
      LoweredStep step = Other(StepKind::kTiedSend, stage);
      Send(&step, tied_gradient_);
      steps->push_back(step);
      return;
    }
    if (tied_edges() && stage == 0) {
      LoweredStep step = Other(StepKind::kTiedReduce, stage);
      Receive(&step, tied_gradient_);
      Send(&step, tied_sum_);
      steps->push_back(step);
    } else if (tied() && (stage == 0 || stage == head())) {
      // Both on this rank: the later of the two finishes both.
      if (left_[0] > 0 || left_[head()] > 0) return;
      Reduce(stage == 0 ? head() : 0, steps);
    }
    Reduce(stage, steps);
  }

  void Reduce(int stage, std::vector<LoweredStep>* steps) const {
    if (!options_.reduce_replicas) return;
    steps->push_back(Other(StepKind::kReplicaReduce, stage));
  }

  static LoweredStep Other(StepKind kind, int stage) {
    return {.kind = kind, .command = {Op::kBackwardWeight, stage, 0}};
  }

  const Schedule& schedule_;
  const LoweringOptions& options_;
  LoweredProgram program_;
  std::vector<int> left_;             // (stage): weight gradients to come.
  std::vector<int> activation_into_;  // (stage): edge, or kNone.
  std::vector<int> gradient_into_;    // (stage): edge, or kNone.
  int tied_gradient_ = kNone;
  int tied_sum_ = kNone;
  std::vector<int> sent_;   // (edge)
  std::vector<int> taken_;  // (edge)
};

absl::Status CheckUniformSlots(const Schedule& schedule,
                               const LoweredProgram& program,
                               const Costs& costs) {
  ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(program));
  const Evaluation evaluation = Evaluate(dataflow, DurationsOf(program, costs));
  if (evaluation.finished) return absl::OkStatus();
  const Deadlock deadlock = ExplainDeadlock(program, dataflow, evaluation);
  return Violation(
      schedule,
      {deadlock.rank,
       CommandsBefore(program, deadlock.rank, deadlock.position)},
      absl::StrCat("deadlock with rendezvous sends; ", deadlock.text));
}

}  // namespace

absl::StatusOr<LoweredProgram> Lower(const Schedule& schedule,
                                     const LoweringOptions& options) {
  RETURN_IF_ERROR(CheckOrder(schedule));
  RETURN_IF_ERROR(CheckOptions(schedule, options));
  LoweredProgram program = Lowerer(schedule, options).Run();
  SetOwnSlots(&program);
  Costs costs = options.costs;
  if (costs.stages.empty()) {
    costs.stages = UniformCosts(schedule.rank_shape(), {}).stages;
  }
  if (options.uniform_slots.has_value()) {
    RETURN_IF_ERROR(CheckUniformSlots(schedule, program, costs));
  } else {
    RETURN_IF_ERROR(SetCapacities(&program, costs, options.memory));
  }
  NumberSlots(&program);
  return program;
}

}  // namespace penstock::coordinator::schedule
