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

int64_t OwnPlaces(const LoweredProgram& program, const RankParts& parts,
                  const Memory& memory) {
  int64_t bytes = 0;
  for (const int s : parts.stages) {
    const StageSlots& stage = program.stages[s];
    const StageBytes place = memory.of(s);
    bytes += stage.slots * place.held_until_input;
    bytes += stage.held * (place.held_until_weight - place.held_until_input);
  }
  return bytes;
}

int64_t InputsAhead(const LoweredProgram& program, const RankParts& parts,
                    const Memory& memory) {
  int64_t bytes = 0;
  for (const int s : parts.stages) {
    bytes += program.stages[s].ahead() * memory.slot.activation;
  }
  return bytes;
}

int64_t TransferBytes(const LoweredProgram& program, const RankParts& parts,
                      const Memory& memory) {
  int64_t bytes = 0;
  for (const int s : parts.stages) {
    bytes += program.stages[s].local_gradient_slots * memory.slot.gradient;
  }
  for (const int e : parts.sends) {
    const Edge& edge = program.edges[e];
    bytes += edge.send_buffers * SlotBytes(memory, edge.kind);
  }
  for (const int e : parts.receives) {
    const Edge& edge = program.edges[e];
    // Stash slots are counted with their stage.
    if (edge.lands_in_stash) continue;
    bytes += edge.capacity * SlotBytes(memory, edge.kind);
  }
  return bytes;
}

}  // namespace

std::vector<RankParts> PartsOfRanks(const LoweredProgram& program) {
  std::vector<RankParts> parts(program.ranks());
  for (int s = 0; s < program.placement.stages(); ++s) {
    parts[program.placement.rank_of(s)].stages.push_back(s);
  }
  for (int e = 0; e < static_cast<int>(program.edges.size()); ++e) {
    parts[program.edges[e].source_rank].sends.push_back(e);
    parts[program.edges[e].target_rank].receives.push_back(e);
  }
  return parts;
}

MemoryUse MemoryUseOf(const LoweredProgram& program, int rank,
                      const RankParts& parts, const Memory& memory) {
  MemoryUse use;
  int in_flight = 0;
  int64_t held = 0;
  const std::vector<LoweredStep>& steps = program.steps[rank];
  for (int p = 0; p < static_cast<int>(steps.size()); ++p) {
    if (steps[p].kind != StepKind::kCompute) continue;
    const Command& c = steps[p].command;
    const StageBytes bytes = memory.of(c.stage);
    int64_t now = held;  // While the command runs.
    switch (c.op) {
      case Op::kForward:
        ++in_flight;
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
    if (now > use.peak_held) {
      use.peak_held = now;
      use.peak_position = p;
    }
    in_flight -= ProducesWeightGradient(c.op);
  }
  use.in_flight_at_end = in_flight;
  use.activations = memory.places == Places::kOwn
                        ? OwnPlaces(program, parts, memory)
                        : use.peak_held + InputsAhead(program, parts, memory);
  use.transfers = TransferBytes(program, parts, memory);
  return use;
}

}  // namespace penstock::coordinator::schedule
