#include "coordinator/schedule/auto_admission.h"

#include <algorithm>

namespace penstock::coordinator::schedule {

Admission::Admission(const AutoProblem& problem, Backward backward)
    : needs_(problem.stages) {
  for (int r = 0; r < problem.ranks; ++r) {
    const std::vector<int>& stages = problem.stages_of[r];
    int64_t growth = 0;
    for (const int s : stages) {
      Need& need = needs_[s];
      need.forward = problem.held[s].held_until_input;
      need.weight = backward == Backward::kWhole
                        ? need.forward
                        : problem.held[s].held_until_weight;
      need.growth = need.weight - need.forward;
      need.budget = problem.budget[r];
      // Where I has no room B goes on.
      if (backward == Backward::kSplit) growth = std::max(growth, need.growth);
    }
    int64_t after = growth;
    for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
      needs_[*it].after = after;
      after += needs_[*it].forward;
    }
  }
}

}  // namespace penstock::coordinator::schedule
