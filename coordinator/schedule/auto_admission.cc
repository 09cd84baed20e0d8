#include "coordinator/schedule/auto_admission.h"

#include <algorithm>
#include <cmath>

namespace penstock::coordinator::schedule {

Admission::Admission(const AutoProblem& problem, Backward backward,
                     const PlaceSplit& split)
    : own_(problem.places == Places::kOwn),
      micro_batches_(problem.micro_batches),
      needs_(problem.stages) {
  for (int s = 0; s < problem.stages; ++s) {
    Need& need = needs_[s];
    need.rank = problem.rank_of[s];
    need.forward = problem.held[s].held_until_input;
    need.weight = backward == Backward::kWhole
                      ? need.forward
                      : problem.held[s].held_until_weight;
    need.growth = need.weight - need.forward;
    need.budget = problem.budget[need.rank];
    need.takes_slot = s == 0 || problem.remote_input[s];
    need.feeds_next = s + 1 < problem.stages && !problem.remote_input[s + 1];
  }
  begin_.ranks.resize(problem.ranks);
  if (own_) {
    MakePlaces(problem, backward, split);
  } else {
    ShareRoom(problem, backward);
  }
}

void Admission::ShareRoom(const AutoProblem& problem, Backward backward) {
  for (const std::vector<int>& stages : problem.stages_of) {
    int64_t after = 0;
    // Where I has no room B goes on.
    for (const int s : stages) {
      if (backward == Backward::kSplit) {
        after = std::max(after, needs_[s].growth);
      }
    }
    for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
      needs_[*it].after = after;
      after += needs_[*it].forward;
    }
  }
}

void Admission::MakePlaces(const AutoProblem& problem, Backward backward,
                           const PlaceSplit& split) {
  begin_.stages.resize(problem.stages);
  // Where I has no place B goes on.
  const int least_held = backward == Backward::kSplit ? 1 : 0;
  const auto slots_of = [&](int s, int slots) {
    if (split.slots != PlaceSplit::Slots::kByDepth) return slots;
    return std::max(1, slots * (problem.stages - s) / problem.stages);
  };
  const auto held_of = [&](int slots) {
    return std::max(least_held,
                    static_cast<int>(std::ceil(split.held_share * slots)));
  };
  for (int r = 0; r < problem.ranks; ++r) {
    const std::vector<int>& stages = problem.stages_of[r];
    int slots = 1;
    for (; slots < problem.micro_batches; ++slots) {
      int64_t bytes = 0;
      for (const int s : stages) {
        const int more = slots_of(s, slots + 1);
        bytes += more * needs_[s].forward + held_of(more) * needs_[s].growth;
      }
      if (bytes > problem.budget[r]) break;
    }
    for (const int s : stages) {
      const int most = slots_of(s, slots);
      needs_[s].most_slots = split.slots == PlaceSplit::Slots::kAsTaken
                                 ? problem.micro_batches
                                 : most;
      begin_.stages[s] = {.slots = 1, .held = held_of(most)};
      begin_.ranks[r].bytes +=
          needs_[s].forward + held_of(most) * needs_[s].growth;
    }
  }
}

bool Admission::ForwardTakesRoom(int stage, const Holding& holding) const {
  const Need& need = needs_[stage];
  const StageHolding& own = holding.stages[stage];
  // At most each of its slots could have a place for what I adds.
  const int64_t others = (own.slots + 1 - own.held) * need.growth;
  return !HasSlotsForForward(stage, holding) &&
         holding.ranks[need.rank].bytes + need.forward + others > need.budget;
}

bool Admission::InputTakesRoom(int stage, const Holding& holding) const {
  const Need& need = needs_[stage];
  const StageHolding& own = holding.stages[stage];
  const int64_t others = (micro_batches_ - own.slots) * need.forward;
  return !HasPlaceForInput(stage, holding) &&
         holding.ranks[need.rank].bytes + need.growth + others > need.budget;
}

bool Admission::AllowsForwardAfterInput(int stage,
                                        const Holding& holding) const {
  const Need& need = needs_[stage];
  const RankHolding& rank = holding.ranks[need.rank];
  return rank.bytes + need.growth + need.forward <= need.budget &&
         rank.bytes - rank.put_off + need.after <= need.budget;
}

bool Admission::AllowsInputAfterForward(int stage,
                                        const Holding& holding) const {
  const Need& need = needs_[stage];
  const RankHolding& rank = holding.ranks[need.rank];
  return need.growth <= 0 ||
         rank.bytes + need.forward + need.growth <= need.budget;
}

void Admission::Hold(int stage, Op op, Holding* holding) const {
  const Need& need = needs_[stage];
  if (own_) {
    HoldOwn(need, stage, op, holding);
  } else {
    HoldShared(need, op, &holding->ranks[need.rank]);
  }
}

void Admission::HoldShared(const Need& need, Op op, RankHolding* rank) {
  switch (op) {
    case Op::kForward:
      rank->bytes += need.forward;
      break;
    case Op::kBackwardInput:
      rank->bytes += need.growth;
      rank->put_off += need.weight;
      break;
    case Op::kBackwardWeight:
      rank->bytes -= need.weight;
      rank->put_off -= need.weight;
      break;
    case Op::kBackward:
      rank->bytes -= need.forward;
      break;
  }
}

void Admission::HoldOwn(const Need& need, int stage, Op op,
                        Holding* holding) const {
  StageHolding& own = holding->stages[stage];
  RankHolding& rank = holding->ranks[need.rank];
  const auto take = [](StageHolding* places) {
    places->slots = std::max(places->slots, ++places->in_flight);
  };
  switch (op) {
    case Op::kForward:
      rank.bytes += MoreForForward(need, stage, *holding);
      if (need.takes_slot) take(&own);
      if (need.feeds_next) take(&holding->stages[stage + 1]);
      break;
    case Op::kBackwardInput:
      rank.bytes += MoreForInput(need, own);
      own.held = std::max(own.held, ++own.put_off);
      break;
    case Op::kBackwardWeight:
      --own.put_off;
      --own.in_flight;
      break;
    case Op::kBackward:
      --own.in_flight;
      break;
  }
}

bool Admission::AllowsWeightBackwards(int stage, const Holding& holding) const {
  const Need& need = needs_[stage];
  const int64_t bytes = holding.ranks[need.rank].bytes;
  const int64_t more = own_ ? MoreForForward(need, stage, holding) +
                                  MoreForInput(need, holding.stages[stage])
                            : std::max(need.forward, need.weight);
  return bytes + more <= need.budget;
}

bool Admission::AllowsInputBackwards(int stage, const Holding& holding) const {
  const Need& need = needs_[stage];
  return own_ || need.growth >= 0 ||
         holding.ranks[need.rank].bytes - need.growth <= need.budget;
}

void Admission::HoldBackwards(int stage, Op op, Holding* holding) const {
  const Need& need = needs_[stage];
  if (own_) {
    StageHolding& own = holding->stages[stage];
    if (op == Op::kBackwardWeight) {
      HoldOwn(need, stage, Op::kForward, holding);
      HoldOwn(need, stage, Op::kBackwardInput, holding);
    } else {
      --(op == Op::kBackwardInput ? own.put_off : own.in_flight);
    }
    return;
  }
  holding->ranks[need.rank].bytes += op == Op::kBackwardWeight  ? need.weight
                                     : op == Op::kBackwardInput ? -need.growth
                                                                : -need.forward;
}

HoldingChange Admission::Before(int stage, const Holding& holding) const {
  const Need& need = needs_[stage];
  HoldingChange before{.rank = holding.ranks[need.rank]};
  if (!own_) return before;
  before.stage = holding.stages[stage];
  if (need.feeds_next) before.next = holding.stages[stage + 1];
  return before;
}

void Admission::TakeBack(int stage, const HoldingChange& before,
                         Holding* holding) const {
  const Need& need = needs_[stage];
  holding->ranks[need.rank] = before.rank;
  if (!own_) return;
  holding->stages[stage] = before.stage;
  if (need.feeds_next) holding->stages[stage + 1] = before.next;
}

std::vector<int64_t> PeakHeld(const AutoProblem& problem,
                              const Orders& orders) {
  const Admission admission(problem, Backward::kEither);
  Holding holding = admission.Begin();
  std::vector<int64_t> peaks;
  for (int r = 0; r < problem.ranks; ++r) {
    const int64_t& bytes = holding.ranks[r].bytes;
    int64_t peak = bytes;
    for (const Command& c : orders[r]) {
      admission.Hold(c.stage, c.op, &holding);
      peak = std::max(peak, bytes);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace penstock::coordinator::schedule
