#include "coordinator/schedule/slot_numbers.h"

namespace penstock::coordinator::schedule {

SlotNumberer::SlotNumberer(const LoweredProgram& program)
    : program_(program),
      local_slot_(program.stages.size() * program.micro_batches, kNone),
      handed_over_(program.stages.size(), 0) {}

int& SlotNumberer::LocalSlot(int stage, int micro_batch) {
  return local_slot_[static_cast<size_t>(stage) * program_.micro_batches +
                     micro_batch];
}

StepSlots SlotNumberer::Next(const LoweredStep& step) {
  StepSlots slots;
  if (step.send_edge != kNone) {
    const int buffers = program_.edges[step.send_edge].send_buffers;
    slots.send = buffers == 0 ? 0 : step.send_message % buffers;
  }
  if (step.receive_edge != kNone) {
    const Edge& edge = program_.edges[step.receive_edge];
    if (!edge.lands_in_stash) {
      slots.receive =
          edge.capacity == 0 ? 0 : step.receive_message % edge.capacity;
    }
  }
  if (step.kind == StepKind::kCompute) NumberCommand(step, &slots);
  return slots;
}

void SlotNumberer::NumberCommand(const LoweredStep& step, StepSlots* slots) {
  const Placement& placement = program_.placement;
  const int s = step.command.stage;
  const int m = step.command.micro_batch;
  slots->stash = m % program_.stages[s].slots;
  if (step.command.op == Op::kForward) {
    if (slots->receive == kNone) slots->receive = slots->stash;
    if (s + 1 < placement.stages() && placement.same_rank(s, s + 1)) {
      slots->send = m % program_.stages[s + 1].slots;
    }
  } else if (ProducesInputGradient(step.command.op)) {
    if (s + 1 < placement.stages() && placement.same_rank(s, s + 1)) {
      slots->receive = LocalSlot(s, m);
    }
    if (s > 0 && placement.same_rank(s - 1, s)) {
      slots->send =
          handed_over_[s]++ % program_.stages[s - 1].local_gradient_slots;
      LocalSlot(s - 1, m) = slots->send;
    }
  }
}

void NumberSlots(LoweredProgram* program) {
  SlotNumberer numberer(*program);
  for (auto& steps : program->steps) {
    for (LoweredStep& step : steps) {
      const StepSlots slots = numberer.Next(step);
      step.stash_slot = slots.stash;
      step.receive_slot = slots.receive;
      step.send_slot = slots.send;
    }
  }
}

}  // namespace penstock::coordinator::schedule
