// The lower bound of what a state can lead to.
#include <algorithm>

#include "coordinator/schedule/auto_state.h"

namespace penstock::coordinator::schedule {

// When each stage's next F and I can start at best; never where none is left.
void StateRules::EarliestNext(const StepState& state, double* forward,
                              double* input) const {
  const int stages = problem_.stages;
  const int micro_batches = problem_.micro_batches;
  for (int s = 0; s < stages; ++s) {
    if (state.counts[s].forwards == micro_batches) {
      forward[s] = kNever;
      continue;
    }
    double ready = ForwardReady(state, s);
    if (ready == kNever) {
      ready = forward[s - 1] + least_[s - 1].forward +
              (problem_.remote_input[s] ? problem_.activation_transfer() : 0);
    }
    forward[s] = std::max(ready, state.free[problem_.rank_of[s]]);
  }
  for (int s = stages - 1; s >= 0; --s) {
    const StageCounts& counts = state.counts[s];
    if (counts.inputs == micro_batches) {
      input[s] = kNever;
      continue;
    }
    double ready = InputReady(state, s);
    if (ready == kNever) {
      ready =
          counts.inputs == counts.forwards ? forward[s] + least_[s].forward : 0;
      if (s + 1 < stages && state.counts[s + 1].inputs == counts.inputs) {
        ready = std::max(ready, input[s + 1] + least_[s + 1].backward_input +
                                    (problem_.remote_input[s + 1]
                                         ? problem_.gradient_transfer()
                                         : 0));
      }
    }
    input[s] = std::max(ready, state.free[problem_.rank_of[s]]);
  }
}

StateScore StateRules::Score(const StepState& state,
                             ScoreScratch* scratch) const {
  std::vector<double>& forward = scratch->forward;
  std::vector<double>& input = scratch->input;
  forward.resize(problem_.stages);
  input.resize(problem_.stages);
  EarliestNext(state, forward.data(), input.data());
  const int micro_batches = problem_.micro_batches;
  StateScore score;
  for (int r = 0; r < problem_.ranks; ++r) {
    const double free = state.free[r];
    double forwards = 0, inputs = 0, weights = 0, ready_weights = 0;
    double begin = kNever, first_input = kNever;
    double tail = kNever;
    double chain = 0;
    int weights_left = 0;
    double weight_time = 0;
    for (const int s : problem_.stages_of[r]) {
      const StageCounts& counts = state.counts[s];
      const StageTimes& times = least_[s];
      const int forwards_left = micro_batches - counts.forwards;
      const int inputs_left = micro_batches - counts.inputs;
      weights_left = micro_batches - counts.weights;
      weight_time = times.backward_weight;
      forwards += forwards_left * times.forward;
      inputs += inputs_left * times.backward_input;
      weights += weights_left * times.backward_weight;
      ready_weights += (counts.inputs - counts.weights) * weight_time;
      if (counts.weights < counts.inputs) begin = free;
      begin = std::min({begin, forward[s], input[s]});
      first_input = std::min(first_input, input[s]);
      if (inputs_left > 0) tail = std::min(tail, tails_[s].after_input);
      if (forwards_left > 0) {
        chain = std::max(chain, forward[s] + forwards_left * times.forward +
                                    tails_[s].after_forward);
      }
    }
    double rank = free;
    if (begin != kNever) rank = begin + forwards + inputs + weights;
    if (first_input != kNever) {
      // What does not fit before the first I comes after it.
      const double gap = first_input - begin;
      rank = std::max(rank, first_input + inputs + (weights - ready_weights) +
                                std::max(0.0, forwards + ready_weights - gap));
      double to_last = std::max(begin + forwards, first_input) + inputs;
      if (weights_left > put_off_[r]) {
        to_last =
            std::max(to_last, begin + forwards + inputs +
                                  (weights_left - put_off_[r]) * weight_time);
      }
      rank = std::max(rank + tied_[r].after_rank,
                      to_last + tail + tied_[r].after_chain);
    } else {
      rank += tied_[r].after_rank;
    }
    score.total += rank;
    score.bound = std::max({score.bound, rank, chain});
  }
  return score;
}

}  // namespace penstock::coordinator::schedule
