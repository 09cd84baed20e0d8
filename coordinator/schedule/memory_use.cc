#include "coordinator/schedule/memory_use.h"

#include <algorithm>

namespace penstock::coordinator::schedule {
namespace {

int64_t SlotBytes(const Memory& memory, EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kActivation:
      return memory.slot.activation;
    case EdgeKind::kGradient:
      return memory.slot.gradient;
    case EdgeKind::kTiedGradient:
    case EdgeKind::kTiedSum:
      return memory.slot.tied;
  }
  return 0;
}

int64_t StaticBytes(const LoweredProgram& program, int rank,
                    const Memory& memory) {
  int64_t bytes = 0;
  for (const StageSlots& stage : program.stages) {
    if (stage.rank != rank) continue;
    bytes += stage.ahead() * memory.slot.activation;
    bytes += stage.local_gradient_slots * memory.slot.gradient;
  }
  for (const Edge& edge : program.edges) {
    const int64_t slot = SlotBytes(memory, edge.kind);
    if (edge.source_rank == rank) bytes += edge.send_buffers * slot;
    // Stash slots are counted with their stage.
    if (edge.target_rank == rank && !edge.lands_in_stash) {
      bytes += edge.capacity * slot;
    }
  }
  return bytes;
}

}  // namespace

MemoryUse MemoryUseOf(const LoweredProgram& program, int rank,
                      const Memory& memory) {
  MemoryUse use;
  int in_flight = 0;
  int until_input = 0;
  int64_t held = 0;
  const std::vector<LoweredStep>& steps = program.steps[rank];
  for (int p = 0; p < static_cast<int>(steps.size()); ++p) {
    if (steps[p].kind != StepKind::kCompute) continue;
    const Command& c = steps[p].command;
    const StageBytes bytes =
        memory.stages.empty() ? StageBytes{} : memory.stages[c.stage];
    int64_t now = held;  // While the command runs.
    switch (c.op) {
      case Op::kForward:
        ++in_flight;
        ++until_input;
        held += bytes.held_until_input;
        now = held;
        break;
      case Op::kBackward:
        held -= bytes.held_until_input;
        break;
      case Op::kBackwardInput:
        held += bytes.held_until_weight - bytes.held_until_input;
        now = std::max(now, held);
        break;
      case Op::kBackwardWeight:
        held -= bytes.held_until_weight;
        break;
    }
    use.peak_in_flight = std::max(use.peak_in_flight, in_flight);
    use.peak_until_input = std::max(use.peak_until_input, until_input);
    if (now > use.peak_held) {
      use.peak_held = now;
      use.peak_position = p;
    }
    in_flight -= ProducesWeightGradient(c.op);
    until_input -= ProducesInputGradient(c.op);
  }
  use.in_flight_at_end = in_flight;
  use.slots = StaticBytes(program, rank, memory);
  return use;
}

}  // namespace penstock::coordinator::schedule
