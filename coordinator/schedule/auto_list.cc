#include "coordinator/schedule/auto_list.h"

#include <algorithm>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_earliest_rank.h"

namespace penstock::coordinator::schedule {
namespace {

class ListScheduler {
 public:
  ListScheduler(const AutoProblem& problem, const ListPolicy& policy)
      : problem_(problem),
        policy_(policy),
        admission_(problem, policy.backward, policy.split),
        holding_(admission_.Begin()),
        backward_(policy.backward == Backward::kWhole ? Op::kBackward
                                                      : Op::kBackwardInput),
        micro_batches_(problem.micro_batches),
        activation_(problem.stages * micro_batches_, kNever),
        gradient_(problem.stages * micro_batches_, kNever),
        stages_(problem.stages),
        ranks_(problem.ranks),
        wake_(problem.ranks) {
    std::fill_n(activation_.begin(), micro_batches_, 0.0);
    std::fill_n(gradient_.end() - micro_batches_, micro_batches_, 0.0);
    result_.orders.resize(problem.ranks);
    for (int r = 0; r < problem.ranks; ++r) {
      result_.orders[r].reserve(3 * problem.chunks * micro_batches_);
    }
  }

  ListResult Run() && {
    left_ = int64_t{3} * problem_.stages * micro_batches_;
    while (left_ > 0) {
      const double now = wake_.Least();
      if (now == kNever) return std::move(result_);
      const int rank = wake_.Find();
      const Choice choice = Decide(rank, now);
      if (choice.stage == kNone) {
        wake_.Set(rank, choice.retry);
      } else {
        Start(rank, choice, now);
        --left_;
      }
    }
    result_.finished = true;
    for (const Rank& rank : ranks_) {
      result_.makespan = std::max(result_.makespan, rank.free);
    }
    return std::move(result_);
  }

 private:
  struct Stage {
    int forwards = 0;  // Commands begun.
    int inputs = 0;
    int weights = 0;
  };
  struct Rank {
    double free = 0;
    int in_flight = 0;
    Op last = Op::kBackwardInput;
  };
  struct Choice {
    int stage = kNone;
    Op op = Op::kForward;
    double retry = kNever;  // Without a stage: when to look again.
  };

  size_t Cell(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }

  // When the edge into `stage` (an activation's) or out of it has a free send
  // buffer for the micro-batch.
  double BufferFree(const std::vector<double>& arrivals, int target,
                    bool remote, int micro_batch) const {
    const int before = micro_batch - problem_.send_buffers;
    return remote && before >= 0 ? arrivals[Cell(target, before)] : 0;
  }

  double ForwardReady(int s) const {
    const int m = stages_[s].forwards;
    const double ready = activation_[Cell(s, m)];
    if (s + 1 == problem_.stages) return ready;
    return std::max(
        ready, BufferFree(activation_, s + 1, problem_.remote_input[s + 1], m));
  }

  double InputReady(int s) const {
    const int m = stages_[s].inputs;
    const double ready = gradient_[Cell(s, m)];
    if (s == 0) return ready;
    return std::max(ready,
                    BufferFree(gradient_, s - 1, problem_.remote_input[s], m));
  }

  Choice Decide(int r, double now) const {
    const Rank& rank = ranks_[r];
    int forward = kNone, input = kNone, weight = kNone;
    double next = kNever, next_input = kNever;
    bool needs_memory = false;
    const Preference& preference = policy_.ranks[r];
    const int most = preference.most_in_flight;
    // The deepest stage first: its micro-batch is the oldest.
    const std::vector<int>& own = problem_.stages_of[r];
    for (auto it = own.rbegin(); it != own.rend(); ++it) {
      const int s = *it;
      const Stage& stage = stages_[s];
      if (stage.inputs < stage.forwards) {
        const double ready = InputReady(s);
        if (ready > now) {
          next = std::min(next, ready);
          next_input = std::min(next_input, ready);
        } else if (!admission_.AllowsInput(s, holding_)) {
          needs_memory = true;
        } else if (input == kNone || stage.inputs < stages_[input].inputs) {
          input = s;
        }
      }
      if (stage.forwards < micro_batches_ && rank.in_flight < most) {
        const double ready = ForwardReady(s);
        if (ready != kNever && !admission_.AllowsForward(s, holding_)) {
          needs_memory |= ready <= now;
        } else if (ready > now) {
          next = std::min(next, ready);
        } else if (forward == kNone) {
          forward = s;
        }
      } else if (rank.in_flight >= most) {
        needs_memory |=
            stage.forwards < micro_batches_ && ForwardReady(s) <= now;
      }
      if (stage.weights < stage.inputs &&
          (weight == kNone || stage.weights < stages_[weight].weights)) {
        weight = s;
      }
    }
    if (input != kNone && forward != kNone) {
      const bool take_input = preference.first == Preference::First::kInput ||
                              (preference.first == Preference::First::kTurns &&
                               rank.last == Op::kForward);
      (take_input ? forward : input) = kNone;
    }
    if (input != kNone) return {input, backward_};
    if (forward != kNone &&
        next_input - now <
            preference.least_forward_gap * problem_.times[forward].forward) {
      forward = kNone;
    }
    if (forward != kNone) return {forward, Op::kForward};
    if (weight != kNone &&
        (needs_memory ||
         next - now >=
             preference.least_gap * problem_.times[weight].backward_weight)) {
      return {weight, Op::kBackwardWeight};
    }
    return {.retry = next};
  }

  void Start(int r, const Choice& choice, double now) {
    const int s = choice.stage;
    Stage& stage = stages_[s];
    Rank& rank = ranks_[r];
    const double end = now + problem_.times[s].of(choice.op);
    rank.free = end;
    wake_.Set(r, end);
    admission_.Hold(s, choice.op, &holding_);
    int m = 0;
    switch (choice.op) {
      case Op::kForward:
        m = stage.forwards++;
        ++rank.in_flight;
        rank.last = choice.op;
        if (s + 1 < problem_.stages) {
          Send(&activation_, s + 1, m, problem_.remote_input[s + 1],
               problem_.activation_wire, end);
        }
        break;
      case Op::kBackwardInput:
      case Op::kBackward:
        m = stage.inputs++;
        if (choice.op == Op::kBackward) {
          ++stage.weights;
          --rank.in_flight;
          --left_;
        }
        rank.last = choice.op;
        if (s > 0) {
          Send(&gradient_, s - 1, m, problem_.remote_input[s],
               problem_.gradient_wire, end);
        }
        break;
      case Op::kBackwardWeight:
        m = stage.weights++;
        --rank.in_flight;
        break;
    }
    result_.orders[r].push_back({choice.op, s, m});
  }

  void Send(std::vector<double>* arrivals, int target, int micro_batch,
            bool remote, double wire, double end) {
    const size_t cell = Cell(target, micro_batch);
    if (!remote) {
      (*arrivals)[cell] = end;
      return;
    }
    const double before = micro_batch == 0 ? 0 : (*arrivals)[cell - 1];
    const double arrival = problem_.Arrival(end, before, wire);
    (*arrivals)[cell] = arrival;
    const int rank = problem_.rank_of[target];
    const double wake = std::max(arrival, ranks_[rank].free);
    if (wake < wake_.Of(rank)) wake_.Set(rank, wake);
  }

  const AutoProblem& problem_;
  const ListPolicy& policy_;
  const Admission admission_;
  Holding holding_;
  const Op backward_;
  const int micro_batches_;
  std::vector<double> activation_;  // (stage, micro-batch): arrival.
  std::vector<double> gradient_;
  std::vector<Stage> stages_;
  std::vector<Rank> ranks_;
  EarliestRank wake_;  // When each rank is next asked.
  int64_t left_ = 0;   // F, I and W to begin.
  ListResult result_;
};

}  // namespace

ListResult ScheduleList(const AutoProblem& problem, const ListPolicy& policy) {
  return ListScheduler(problem, policy).Run();
}

}  // namespace penstock::coordinator::schedule
