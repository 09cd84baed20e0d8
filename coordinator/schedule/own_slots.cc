// SetOwnSlots of capacity.h: what follows from each rank's own order.
#include <algorithm>
#include <vector>

#include "coordinator/schedule/capacity.h"

namespace penstock::coordinator::schedule {
namespace {

// From when to when something holds a slot: positions in one rank's order.
struct Use {
  int micro_batch;
  int from;
  int to;
};

// Whether slot numbers key(i) mod n never overlap; uses are in order of `from`.
template <typename Key>
bool Fits(const std::vector<Use>& uses, int n, const Key& key,
          std::vector<int>* busy_until) {
  busy_until->assign(n, -1);
  for (int i = 0; i < static_cast<int>(uses.size()); ++i) {
    int& until = (*busy_until)[key(i) % n];
    // A slot freed by one step can be used by the next.
    if (until >= uses[i].from) return false;
    until = uses[i].to;
  }
  return true;
}

// Most uses at one time.
int Peak(const std::vector<Use>& uses) {
  std::vector<int> ends;
  for (const Use& use : uses) ends.push_back(use.to);
  std::sort(ends.begin(), ends.end());
  int peak = 0;
  for (size_t i = 0, ended = 0; i < uses.size(); ++i) {
    while (ended < ends.size() && ends[ended] < uses[i].from) ++ended;
    peak = std::max(peak, static_cast<int>(i + 1 - ended));
  }
  return peak;
}

template <typename Key>
int LeastSlots(const std::vector<Use>& uses, int limit, const Key& key) {
  std::vector<int> busy_until;
  int n = std::max(1, Peak(uses));
  while (n < limit && !Fits(uses, n, key, &busy_until)) ++n;
  return n;
}

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
    uses.push_back({m, from[m], to[m]});
  }
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.from < b.from; });
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
    slots.peak_in_flight = Peak(in_flight);
    // An input from the stage before on this rank is there from that stage's
    // forward on.
    const bool local_input = s > 0 && placement.same_rank(s - 1, s);
    const std::vector<Use> held =
        local_input ? Uses(at[s - 1].forward, at[s].weight) : in_flight;
    slots.slots = LeastSlots(held, micro_batches,
                             [&](int i) { return held[i].micro_batch; });
    slots.local_gradient_slots = 0;
    if (s + 1 < stages && placement.same_rank(s, s + 1)) {
      slots.local_gradient_slots =
          LeastSlots(Uses(at[s + 1].input, at[s].input), micro_batches,
                     [](int i) { return i; });
    }
  }
}

}  // namespace penstock::coordinator::schedule
