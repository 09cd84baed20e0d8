#include "coordinator/schedule/auto_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {
namespace {

// The least times of a stage, whether its backward is split or not.
struct LeastTimes {
  double forward;
  double input;  // Until its gradient is made.
  double backward;
};

class Bound {
 public:
  explicit Bound(const AutoProblem& problem)
      : problem_(problem), m_(problem.micro_batches) {
    for (const StageTimes& t : problem.times) {
      times_.push_back(
          {.forward = t.forward,
           .input = std::min(t.backward_input, t.of(Op::kBackward)),
           .backward = std::min(t.backward_input + t.backward_weight,
                                t.of(Op::kBackward))});
    }
    Chains();
  }

  double Find() const {
    double bound = 0;
    for (int r = 0; r < problem_.ranks; ++r) {
      bound = std::max(bound, OfRank(r));
      for (const int s : problem_.stages_of[r]) {
        bound = std::max({bound, OfRoundTrips(s), OfPeriods(s)});
      }
    }
    return bound;
  }

 private:
  void Chains() {
    const int stages = problem_.stages;
    head_.assign(stages, 0);
    first_input_.assign(stages, 0);
    period_.assign(stages, 0);
    input_period_.assign(stages, 0);
    tail_.assign(stages, 0);
    for (int s = 1; s < stages; ++s) {
      const bool remote = problem_.remote_input[s];
      head_[s] = head_[s - 1] + times_[s - 1].forward +
                 (remote ? problem_.activation_transfer() : 0);
      const double gradient = remote ? problem_.gradient_transfer() : 0;
      tail_[s] = gradient + (s == 1 ? times_[0].backward
                                    : times_[s - 1].input + tail_[s - 1]);
    }
    for (int s = 0; s < stages; ++s) {
      period_[s] = times_[s].forward;
      if (problem_.send_buffers == 1 && s + 1 < stages &&
          problem_.remote_input[s + 1]) {
        period_[s] += problem_.activation_transfer();
      }
      if (s > 0) period_[s] = std::max(period_[s], period_[s - 1]);
    }
    for (int s = stages - 1; s >= 0; --s) {
      input_period_[s] = times_[s].input;
      if (problem_.send_buffers == 1 && s > 0 && problem_.remote_input[s]) {
        input_period_[s] += problem_.gradient_transfer();
      }
      if (s + 1 < stages) {
        input_period_[s] = std::max(input_period_[s], input_period_[s + 1]);
      }
    }
    // Of stage 0 itself only its W is left after its I.
    tail_[0] = times_[0].backward - times_[0].input;
    first_input_[stages - 1] = head_[stages - 1] + times_[stages - 1].forward;
    for (int s = stages - 2; s >= 0; --s) {
      first_input_[s] =
          first_input_[s + 1] + times_[s + 1].input +
          (problem_.remote_input[s + 1] ? problem_.gradient_transfer() : 0);
    }
  }

  // Most micro-batches of a size that fit; M where they all do.
  int Fitting(int64_t budget, int64_t size) const {
    if (size <= 0) return m_;
    return static_cast<int>(std::clamp<int64_t>(budget / size, 0, m_));
  }

  double OfRank(int r) const {
    const std::vector<int>& stages = problem_.stages_of[r];
    double forward = 0, input = 0, backward = 0, weight = 0;
    int64_t least_weight = kNoBudget;
    for (const int s : stages) {
      forward += times_[s].forward;
      input += times_[s].input;
      backward += times_[s].backward;
      weight += times_[s].backward - times_[s].input;
      least_weight = std::min(least_weight, problem_.held[s].held_until_weight);
    }
    const double start = head_[stages.front()];
    const double first_input = first_input_[stages.back()];
    const double all = start + m_ * (forward + backward);
    const double forwards_left =
        std::max(0.0, m_ * forward - ForwardsBefore(r, first_input - start));
    const double from_first_input = first_input + m_ * backward + forwards_left;
    // While the last I runs at most this many still wait for their W: its own
    // at least, which may be the rest of a B.
    const int fitting =
        stages.size() > 1
            ? m_
            : std::max(1, Fitting(problem_.budget[r], least_weight));
    const double to_last_input =
        std::max(start + m_ * forward, first_input + forwards_left) +
        m_ * input + std::max(0, m_ - fitting) * weight + tail_[stages.front()];
    const TiedTails tied = TiedTailsOf(problem_, r);
    return std::max({all + tied.after_rank, from_first_input + tied.after_rank,
                     to_last_input + tied.after_chain});
  }

  // Most time that a rank can spend in forwards during `window`, which begins
  // with its first.
  double ForwardsBefore(int r, double window) const {
    const std::vector<int>& stages = problem_.stages_of[r];
    if (stages.size() > 1) return window;
    const int s = stages.front();
    const double forward = times_[s].forward;
    const int fitting =
        Fitting(problem_.budget[r], problem_.held[s].held_until_input);
    // The next one starts no sooner than its input comes from the slowest rank
    // above, and than the send buffer is free again.
    const double period = period_[s];
    double work = window;
    if (period > forward) {
      const double whole = std::floor(window / period);
      work = whole * forward + std::min(forward, window - whole * period);
    }
    return std::min(work, fitting * forward);
  }

  // F and I leave a stage no faster than its edges and the stages before them.
  double OfPeriods(int s) const {
    const double last_forward =
        head_[s] + (m_ - 1) * period_[s] + times_[s].forward;
    // From there all of the way down and back.
    const int last = problem_.stages - 1;
    const double way_back = first_input_[last] - head_[s] - times_[s].forward +
                            times_[last].input + tail_[last];
    const double last_input =
        first_input_[s] + (m_ - 1) * input_period_[s] + times_[s].input;
    return std::max(last_forward + way_back, last_input + tail_[s]);
  }

  // One stage's memory is used in turn: F(m + k) waits for W(m).
  double OfRoundTrips(int s) const {
    const int r = problem_.rank_of[s];
    const StageBytes& bytes = problem_.held[s];
    const int fitting =
        Fitting(problem_.budget[r],
                std::min(bytes.held_until_input, bytes.held_until_weight));
    if (fitting < 1) return 0;
    const double to_input = first_input_[s] - head_[s];
    const double last =
        to_input + times_[s].input +
        std::max(tail_[s], times_[s].backward - times_[s].input);
    const int before = (m_ - 1) / fitting;
    // The last micro-batch of the first round that has one after it is held up
    // by those before it, and their F of the second round.
    const int ahead = before > 0 ? (m_ - 1) % fitting : 0;
    return head_[s] + before * (to_input + times_[s].backward) +
           ahead * (times_[s].forward + times_[s].backward) + last;
  }

  const AutoProblem& problem_;
  const int m_;
  std::vector<LeastTimes> times_;     // (stage)
  std::vector<double> head_;          // (stage): H
  std::vector<double> first_input_;   // (stage): P
  std::vector<double> period_;        // (stage): least between starts of F,
  std::vector<double> input_period_;  // and of I.
  std::vector<double> tail_;          // (stage): T and the W of stage 0.
};

}  // namespace

double StepLowerBound(int micro_batches, const Placement& placement,
                      const LoweringOptions& options) {
  return Bound(MakeAutoProblem(micro_batches, placement, options)).Find();
}

}  // namespace penstock::coordinator::schedule
