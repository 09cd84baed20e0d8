#include "coordinator/schedule/slot_numbers.h"

#include <vector>

namespace penstock::coordinator::schedule {
namespace {

class Numberer {
 public:
  explicit Numberer(LoweredProgram* program)
      : program_(*program),
        local_slot_(program->stages.size() * program->micro_batches, kNone),
        handed_over_(program->stages.size(), 0) {}

  void Run() {
    for (auto& steps : program_.steps) {
      for (LoweredStep& step : steps) Number(&step);
    }
  }

 private:
  // Of the gradient that `stage` takes from the next stage on its rank.
  int& LocalSlot(int stage, int micro_batch) {
    return local_slot_[static_cast<size_t>(stage) * program_.micro_batches +
                       micro_batch];
  }

  void Number(LoweredStep* step) {
    step->stash_slot = kNone;
    step->receive_slot = kNone;
    step->send_slot = kNone;
    if (step->send_edge != kNone) {
      const int buffers = program_.edges[step->send_edge].send_buffers;
      step->send_slot = buffers == 0 ? 0 : step->send_message % buffers;
    }
    if (step->receive_edge != kNone) {
      const Edge& edge = program_.edges[step->receive_edge];
      if (!edge.lands_in_stash) {
        step->receive_slot =
            edge.capacity == 0 ? 0 : step->receive_message % edge.capacity;
      }
    }
    if (step->kind == StepKind::kCompute) NumberCommand(step);
  }

  void NumberCommand(LoweredStep* step) {
    const Placement& placement = program_.placement;
    const int s = step->command.stage;
    const int m = step->command.micro_batch;
    step->stash_slot = m % program_.stages[s].slots;
    if (step->command.op == Op::kForward) {
      if (step->receive_slot == kNone) step->receive_slot = step->stash_slot;
      if (s + 1 < placement.stages() && placement.same_rank(s, s + 1)) {
        step->send_slot = m % program_.stages[s + 1].slots;
      }
    } else if (ProducesInputGradient(step->command.op)) {
      if (s + 1 < placement.stages() && placement.same_rank(s, s + 1)) {
        step->receive_slot = LocalSlot(s, m);
      }
      if (s > 0 && placement.same_rank(s - 1, s)) {
        step->send_slot =
            handed_over_[s]++ % program_.stages[s - 1].local_gradient_slots;
        LocalSlot(s - 1, m) = step->send_slot;
      }
    }
  }

  LoweredProgram& program_;
  std::vector<int> local_slot_;   // (stage, micro-batch)
  std::vector<int> handed_over_;  // (stage): gradients given to the one before
};

}  // namespace

void NumberSlots(LoweredProgram* program) { Numberer(program).Run(); }

}  // namespace penstock::coordinator::schedule
