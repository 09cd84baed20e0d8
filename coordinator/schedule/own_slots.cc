// SetOwnSlots of capacity.h: what follows from each rank's own order.
#include <algorithm>
#include <vector>

#include "coordinator/schedule/capacity.h"
#include "coordinator/schedule/slot_count.h"

namespace penstock::coordinator::schedule {
namespace {

// Positions of one stage's commands, by micro-batch.
struct StagePositions {
  std::vector<int> forward;
  std::vector<int> input;
  std::vector<int> weight;
};

std::vector<Use> Uses(const std::vector<int>& from,
                      const std::vector<int>& to) {
  std::vector<Use> uses;
  for (int m = 0; m < static_cast<int>(from.size()); ++m) {
    uses.push_back({.number = m, .from = from[m], .to = to[m]});
  }
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.from < b.from; });
  return uses;
}

// From I to W, where they are two.
std::vector<Use> SplitBackwards(const StagePositions& at) {
  std::vector<Use> uses = Uses(at.input, at.weight);
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const Use& use) { return use.from == use.to; }),
             uses.end());
  return uses;
}

}  // namespace

void SetOwnSlots(LoweredProgram* program) {
  const Placement& placement = program->placement;
  const int stages = placement.stages();
  const int micro_batches = program->micro_batches;
  std::vector<StagePositions> at(stages);
  for (StagePositions& stage : at) {
    stage.forward.assign(micro_batches, 0);
    stage.input.assign(micro_batches, 0);
    stage.weight.assign(micro_batches, 0);
  }
  for (const auto& steps : program->steps) {
    for (int p = 0; p < static_cast<int>(steps.size()); ++p) {
      if (steps[p].kind != StepKind::kCompute) continue;
      const Command& c = steps[p].command;
      StagePositions& stage = at[c.stage];
      if (c.op == Op::kForward) stage.forward[c.micro_batch] = p;
      if (ProducesInputGradient(c.op)) stage.input[c.micro_batch] = p;
      if (ProducesWeightGradient(c.op)) stage.weight[c.micro_batch] = p;
    }
  }
  for (int s = 0; s < stages; ++s) {
    StageSlots& slots = program->stages[s];
    slots.rank = placement.rank_of(s);
    const std::vector<Use> in_flight = Uses(at[s].forward, at[s].weight);
    slots.peak_in_flight = MostAtOnce(in_flight);
    slots.held = MostAtOnce(SplitBackwards(at[s]));
    // An input from the stage before on this rank is there from that stage's
    // forward on.
    const bool local_input = s > 0 && placement.same_rank(s - 1, s);
    const std::vector<Use> held =
        local_input ? Uses(at[s - 1].forward, at[s].weight) : in_flight;
    const SlotRange range{.least = 1, .most = micro_batches};
    slots.slots = LeastSlots(held, range);
    slots.local_gradient_slots = 0;
    if (s + 1 < stages && placement.same_rank(s, s + 1)) {
      std::vector<Use> gradients = Uses(at[s + 1].input, at[s].input);
      for (int i = 0; i < micro_batches; ++i) gradients[i].number = i;
      slots.local_gradient_slots = LeastSlots(gradients, range);
    }
  }
}

}  // namespace penstock::coordinator::schedule
