#include "coordinator/schedule/auto_state.h"

#include <algorithm>

namespace penstock::coordinator::schedule {
namespace {

// Of StepState::waits: two bits a rank. Ranks beyond never wait.
constexpr int kWaitingRanks = 32;
constexpr uint64_t kForwardWaits = 1;
constexpr uint64_t kInputWaits = 2;

uint64_t WaitsOf(uint64_t waits, int rank) {
  return rank < kWaitingRanks ? waits >> 2 * rank & 3 : 0;
}

// What has fewer places can get the same. (Shared ones follow from the counts.)
bool NoMorePlaces(const Holding& a, const Holding& b) {
  for (size_t s = 0; s < a.stages.size(); ++s) {
    if (a.stages[s].slots > b.stages[s].slots ||
        a.stages[s].held > b.stages[s].held) {
      return false;
    }
  }
  return true;
}

}  // namespace

StateRules::StateRules(const AutoProblem& problem)
    : problem_(problem),
      admission_(problem, WholeBackwardMayWin(problem) ? Backward::kEither
                                                       : Backward::kSplit),
      tails_(problem.stages),
      put_off_(problem.ranks, problem.micro_batches),
      own_(problem.places == Places::kOwn),
      whole_(WholeBackwardMayWin(problem)) {
  grows_.assign(problem.ranks, 0);
  for (int s = 0; s < problem.stages; ++s) {
    const StageBytes& held = problem.held[s];
    grows_[problem.rank_of[s]] |=
        problem.chunks == 1 && held.held_until_weight > held.held_until_input;
  }
  for (StageTimes times : problem.times) {
    if (whole_) {
      const double whole = times.of(Op::kBackward);
      const double backward =
          std::min(whole, times.backward_input + times.backward_weight);
      times.backward_input = std::min(times.backward_input, whole);
      times.backward_weight = backward - times.backward_input;
    }
    least_.push_back(times);
  }
  const int last = problem.stages - 1;
  tails_[0].after_input = least_[0].backward_weight;
  for (int s = 1; s <= last; ++s) {
    tails_[s].after_input =
        (problem.remote_input[s] ? problem.gradient_transfer() : 0) +
        least_[s - 1].backward_input + tails_[s - 1].after_input;
  }
  tails_[last].after_forward =
      least_[last].backward_input + tails_[last].after_input;
  for (int s = last - 1; s >= 0; --s) {
    tails_[s].after_forward =
        (problem.remote_input[s + 1] ? problem.activation_transfer() : 0) +
        least_[s + 1].forward + tails_[s + 1].after_forward;
  }
  for (int r = 0; r < problem.ranks; ++r) {
    tied_.push_back(TiedTailsOf(problem, r));
  }
  for (int r = 0; r < problem.ranks && problem.chunks == 1; ++r) {
    const int64_t size =
        problem.held[problem.stages_of[r][0]].held_until_weight;
    if (size <= 0) continue;
    // Its own at least, which may be the rest of a B.
    put_off_[r] = static_cast<int>(std::clamp<int64_t>(
        problem.budget[r] / size, 1, problem.micro_batches));
  }
}

StepState StateRules::Begin() const {
  const size_t cells = Cell(problem_.stages, 0);
  StepState state;
  state.counts.resize(problem_.stages);
  state.left = 3 * problem_.stages * problem_.micro_batches;
  state.free.assign(problem_.ranks, 0);
  state.holding = admission_.Begin();
  state.activation.assign(cells, kNever);
  state.gradient.assign(cells, kNever);
  std::fill_n(state.activation.begin(), problem_.micro_batches, 0.0);
  return state;
}

void StateRules::AppendNext(const StepState& state, int rank,
                            std::vector<NextCommand>* next) const {
  const double free = state.free[rank];
  const Holding& holding = state.holding;
  const uint64_t waits = WaitsOf(state.waits, rank);
  for (const int s : problem_.stages_of[rank]) {
    const StageCounts& counts = state.counts[s];
    const StageTimes& times = problem_.times[s];
    const auto append = [&](Op op, double ready, double time) {
      const double start = std::max(free, ready);
      next->push_back(
          {.op = op, .stage = s, .start = start, .end = start + time});
    };
    if (const double ready = InputReady(state, s); ready != kNever) {
      if (MayInput(s, waits, holding)) {
        append(Op::kBackwardInput, ready, times.backward_input);
      }
      if (whole_ && counts.weights == counts.inputs &&
          (own_ || (waits & kInputWaits) == 0)) {
        append(Op::kBackward, ready, times.of(Op::kBackward));
      }
    }
    if (counts.forwards < problem_.micro_batches &&
        MayForward(s, waits, holding)) {
      if (const double ready = ForwardReady(state, s); ready != kNever) {
        append(Op::kForward, ready, times.forward);
      }
    }
    if (counts.weights < counts.inputs) {
      append(Op::kBackwardWeight, 0, times.backward_weight);
    }
  }
}

bool StateRules::MayForward(int s, uint64_t waits,
                            const Holding& holding) const {
  if ((waits & kForwardWaits) == 0) return admission_.AllowsForward(s, holding);
  return own_ && admission_.HasSlotsForForward(s, holding);
}

bool StateRules::MayInput(int s, uint64_t waits, const Holding& holding) const {
  if ((waits & kInputWaits) == 0) return admission_.AllowsInput(s, holding);
  return own_ && admission_.HasPlaceForInput(s, holding);
}

void StateRules::Arrive(std::vector<double>* arrivals, int target,
                        int micro_batch, bool remote, double wire,
                        double end) const {
  const size_t cell = Cell(target, micro_batch);
  const double before = micro_batch == 0 ? 0 : (*arrivals)[cell - 1];
  (*arrivals)[cell] = remote ? problem_.Arrival(end, before, wire) : end;
}

void StateRules::Run(const NextCommand& next, StepState* state) const {
  const int s = next.stage;
  const int rank = problem_.rank_of[s];
  StageCounts& counts = state->counts[s];
  state->free[rank] = next.end;
  state->left -= next.op == Op::kBackward ? 2 : 1;
  admission_.Hold(s, next.op, &state->holding);
  if (rank < kWaitingRanks && !own_) {
    const uint64_t over = next.op == Op::kForward ? kInputWaits
                          : next.op == Op::kBackwardWeight
                              ? kInputWaits | kForwardWaits
                              : kForwardWaits;
    state->waits &= ~(over << 2 * rank);
  }
  if (next.op == Op::kForward) {
    const int m = counts.forwards++;
    if (s + 1 < problem_.stages) {
      Arrive(&state->activation, s + 1, m, problem_.remote_input[s + 1],
             problem_.activation_wire, next.end);
    }
  } else if (ProducesInputGradient(next.op)) {
    const int m = counts.inputs++;
    counts.weights += next.op == Op::kBackward;
    if (s > 0) {
      Arrive(&state->gradient, s - 1, m, problem_.remote_input[s],
             problem_.gradient_wire, next.end);
    }
  } else {
    ++counts.weights;
  }
}

StateBefore StateRules::Before(const NextCommand& next,
                               const StepState& state) const {
  return {.free = state.free[problem_.rank_of[next.stage]],
          .holding = admission_.Before(next.stage, state.holding),
          .waits = state.waits};
}

void StateRules::Undo(const NextCommand& next, const StateBefore& before,
                      StepState* state) const {
  const int s = next.stage;
  StageCounts& counts = state->counts[s];
  state->free[problem_.rank_of[s]] = before.free;
  state->waits = before.waits;
  state->left += next.op == Op::kBackward ? 2 : 1;
  admission_.TakeBack(s, before.holding, &state->holding);
  if (next.op == Op::kForward) {
    const int m = --counts.forwards;
    if (s + 1 < problem_.stages) state->activation[Cell(s + 1, m)] = kNever;
  } else if (ProducesInputGradient(next.op)) {
    const int m = --counts.inputs;
    counts.weights -= next.op == Op::kBackward;
    if (s > 0) state->gradient[Cell(s - 1, m)] = kNever;
  } else {
    --counts.weights;
  }
}

uint64_t StateRules::WaitBit(const StepState& state,
                             const NextCommand& next) const {
  const int rank = problem_.rank_of[next.stage];
  if (!grows_[rank] || rank >= kWaitingRanks ||
      next.op == Op::kBackwardWeight) {
    return 0;
  }
  const bool waits =
      own_ ? OwnWait(next, state.holding) : SharedWait(next, state);
  if (!waits) return 0;
  return (next.op == Op::kForward ? kForwardWaits : kInputWaits) << 2 * rank;
}

// A B takes no room for good.
bool StateRules::OwnWait(const NextCommand& next,
                         const Holding& holding) const {
  if (next.op == Op::kForward) {
    return admission_.ForwardTakesRoom(next.stage, holding);
  }
  return next.op == Op::kBackwardInput &&
         admission_.InputTakesRoom(next.stage, holding);
}

// Whether the other one fits before this one, and not after it.
bool StateRules::SharedWait(const NextCommand& next,
                            const StepState& state) const {
  const int s = next.stage;
  const Holding& holding = state.holding;
  const StageCounts& counts = state.counts[s];
  if (next.op == Op::kForward) {
    return counts.inputs < counts.forwards &&
           admission_.AllowsInput(s, holding) &&
           !admission_.AllowsInputAfterForward(s, holding);
  }
  return counts.forwards < problem_.micro_batches &&
         admission_.AllowsForward(s, holding) &&
         !admission_.AllowsForwardAfterInput(s, holding);
}

bool StateRules::Dominates(const StepState& a, const StepState& b) const {
  if ((a.waits & ~b.waits) != 0) return false;
  for (int r = 0; r < problem_.ranks; ++r) {
    if (a.free[r] > b.free[r]) return false;
  }
  if (!NoMorePlaces(a.holding, b.holding)) return false;
  for (int s = 0; s < problem_.stages; ++s) {
    const StageCounts& counts = a.counts[s];
    if (s > 0 && !NoLater(a.activation, b.activation, b,
                          {.source = s - 1,
                           .target = s,
                           .taken = counts.forwards,
                           .sent = a.counts[s - 1].forwards})) {
      return false;
    }
    if (s + 1 < problem_.stages && !NoLater(a.gradient, b.gradient, b,
                                            {.source = s + 1,
                                             .target = s,
                                             .taken = counts.inputs,
                                             .sent = a.counts[s + 1].inputs})) {
      return false;
    }
  }
  return true;
}

// Whether no message that is still to be taken, or still in a send buffer,
// arrives later in `a` than in `b`, so that it matters.
bool StateRules::NoLater(const std::vector<double>& a,
                         const std::vector<double>& b, const StepState& state,
                         const Messages& messages) const {
  const double target_free = state.free[problem_.rank_of[messages.target]];
  const double source_free = state.free[problem_.rank_of[messages.source]];
  const int buffered = std::max(0, messages.sent - problem_.send_buffers);
  for (int m = std::min(messages.taken, buffered); m < messages.sent; ++m) {
    const double arrival = a[Cell(messages.target, m)];
    if (arrival <= b[Cell(messages.target, m)]) continue;
    if (m >= messages.taken && arrival > target_free) return false;
    if (m >= buffered && arrival > source_free) return false;
  }
  return true;
}

}  // namespace penstock::coordinator::schedule
