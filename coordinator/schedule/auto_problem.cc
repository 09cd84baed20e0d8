#include "coordinator/schedule/auto_problem.h"

#include <algorithm>

namespace penstock::coordinator::schedule {
namespace {

constexpr double kUnknown = -1;

// Runs ranks ahead in any order that respects the waits, as evaluation.cc does.
class OrderTimer {
 public:
  OrderTimer(const AutoProblem& problem, const Orders& orders)
      : problem_(problem),
        orders_(orders),
        micro_batches_(problem.micro_batches),
        activation_(problem.stages * micro_batches_, kUnknown),
        gradient_(problem.stages * micro_batches_, kUnknown),
        next_(problem.ranks, 0),
        free_(problem.ranks, 0),
        left_(problem.stages, micro_batches_),
        queued_(problem.ranks, 1) {
    for (int r = 0; r < problem.ranks; ++r) ready_.push_back(r);
  }

  OrderTiming Run() && {
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      queued_[rank] = 0;
      while (next_[rank] < orders_[rank].size() && Advance(rank)) {
      }
    }
    OrderTiming timing{.finished = true};
    for (int r = 0; r < problem_.ranks; ++r) {
      timing.finished &= next_[r] == orders_[r].size() && !InTiedReduce(r);
      timing.makespan = std::max(timing.makespan, free_[r]);
    }
    if (problem_.tied_edges) {
      timing.makespan = std::max(timing.makespan, tied_sum_);
    }
    return timing;
  }

 private:
  int stages() const { return problem_.stages; }
  size_t Cell(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }

  bool InTiedReduce(int rank) const {
    return problem_.tied_edges && rank == problem_.rank_of[0] &&
           left_[0] == 0 && tied_sum_ == kUnknown;
  }

  // Runs the next command of the rank, or returns false where it must wait.
  bool Advance(int rank) {
    if (InTiedReduce(rank) && !Reduce(rank)) return false;
    const Command& c = orders_[rank][next_[rank]];
    const StageTimes& times = problem_.times[c.stage];
    double start = free_[rank];
    if (c.op == Op::kBackwardWeight) {
      free_[rank] = start + times.backward_weight;
    } else if (c.op == Op::kForward) {
      const bool sends = c.stage + 1 < stages();
      if (c.stage > 0 && !WaitFor(activation_, c, &start)) return false;
      if (sends) WaitForBuffer(activation_, c.stage + 1, c, &start);
      free_[rank] = start + times.forward;
      if (sends) {
        Send(&activation_, {Op::kForward, c.stage + 1, c.micro_batch},
             problem_.remote_input[c.stage + 1], problem_.activation_wire,
             free_[rank]);
      }
    } else {
      if (c.stage + 1 < stages() && !WaitFor(gradient_, c, &start)) {
        return false;
      }
      if (c.stage > 0) WaitForBuffer(gradient_, c.stage - 1, c, &start);
      free_[rank] = start + times.of(c.op);
      if (c.stage > 0) {
        Send(&gradient_, {c.op, c.stage - 1, c.micro_batch},
             problem_.remote_input[c.stage], problem_.gradient_wire,
             free_[rank]);
      }
    }
    ++next_[rank];
    if (ProducesWeightGradient(c.op) && --left_[c.stage] == 0) {
      FinishStage(c.stage, rank);
    }
    return true;
  }

  bool WaitFor(const std::vector<double>& arrivals, const Command& c,
               double* start) const {
    const double arrival = arrivals[Cell(c.stage, c.micro_batch)];
    if (arrival == kUnknown) return false;
    *start = std::max(*start, arrival);
    return true;
  }

  // The message that had the send buffer before has arrived.
  void WaitForBuffer(const std::vector<double>& arrivals, int target,
                     const Command& c, double* start) const {
    const int before = c.micro_batch - problem_.send_buffers;
    const int edge = std::max(target, c.stage);  // Its upper end.
    if (before < 0 || !problem_.remote_input[edge]) return;
    *start = std::max(*start, arrivals[Cell(target, before)]);
  }

  void Send(std::vector<double>* arrivals, const Command& to, bool remote,
            double wire, double end) {
    const size_t cell = Cell(to.stage, to.micro_batch);
    if (!remote) {
      (*arrivals)[cell] = end;
      return;
    }
    const double before =
        to.micro_batch == 0 ? kUnknown : (*arrivals)[cell - 1];
    (*arrivals)[cell] = problem_.Arrival(end, before, wire);
    Wake(problem_.rank_of[to.stage]);
  }

  void FinishStage(int stage, int rank) {
    if (!problem_.tied_edges) return;
    const double transfer = problem_.tied_wire + problem_.latency;
    if (stage == stages() - 1) {
      tied_gradient_ = free_[rank] + transfer;
      const int owner = problem_.rank_of[0];
      if (InTiedReduce(owner)) Reduce(owner);
      Wake(owner);
    } else if (stage == 0) {
      Reduce(rank);
    }
  }

  bool Reduce(int rank) {
    if (tied_gradient_ == kUnknown) return false;
    free_[rank] = std::max(free_[rank], tied_gradient_) + problem_.tied_add;
    tied_sum_ = free_[rank] + problem_.tied_wire + problem_.latency;
    return true;
  }

  void Wake(int rank) {
    if (queued_[rank]) return;
    queued_[rank] = 1;
    ready_.push_back(rank);
  }

  const AutoProblem& problem_;
  const Orders& orders_;
  const int micro_batches_;
  std::vector<double> activation_;  // (stage, micro-batch): arrival.
  std::vector<double> gradient_;
  std::vector<size_t> next_;  // (rank)
  std::vector<double> free_;  // (rank)
  std::vector<int> left_;     // (stage): weight gradients to come.
  std::vector<uint8_t> queued_;
  std::vector<int> ready_;
  double tied_gradient_ = kUnknown;  // Arrivals.
  double tied_sum_ = kUnknown;
};

}  // namespace

AutoProblem MakeAutoProblem(int micro_batches, const Placement& placement,
                            const LoweringOptions& options) {
  const int stages = placement.stages();
  const Costs& costs = options.costs;
  AutoProblem problem;
  problem.ranks = placement.ranks;
  problem.stages = stages;
  problem.chunks = stages / placement.ranks;
  problem.micro_batches = micro_batches;
  problem.placement = placement;
  problem.rank_of = placement.rank_of_stage;
  problem.stages_of = StagesOfRanks(placement);
  problem.times = costs.stages;
  problem.remote_input.assign(stages, 0);
  for (int s = 1; s < stages; ++s) {
    problem.remote_input[s] = !placement.same_rank(s - 1, s);
  }
  const auto wire = [&](int64_t bytes) {
    return static_cast<double>(bytes) * costs.seconds_per_byte;
  };
  problem.latency = costs.latency;
  problem.activation_wire = wire(costs.bytes.activation);
  problem.gradient_wire = wire(costs.bytes.gradient);
  problem.send_buffers = options.send_buffers;
  problem.tied_edges = options.tied_embedding && stages > 1 &&
                       !placement.same_rank(0, stages - 1);
  problem.tied_wire = wire(costs.bytes.tied);
  problem.tied_add = costs.tied_add;
  problem.held = options.memory.stages;
  problem.held.resize(stages);
  problem.places = options.memory.places;
  problem.budget = options.memory.limits;
  problem.budget.resize(placement.ranks, kNoBudget);
  return problem;
}

OrderTiming TimeOrders(const AutoProblem& problem, const Orders& orders) {
  return OrderTimer(problem, orders).Run();
}

bool WholeBackwardMayWin(const AutoProblem& problem) {
  for (int s = 0; s < problem.stages; ++s) {
    const StageTimes& times = problem.times[s];
    const StageBytes& held = problem.held[s];
    if (held.held_until_weight > held.held_until_input ||
        times.of(Op::kBackward) <
            times.backward_input + times.backward_weight) {
      return true;
    }
  }
  return false;
}

TiedTails TiedTailsOf(const AutoProblem& problem, int rank) {
  if (!problem.tied_edges || problem.chunks > 1) return {};
  const double transfer = problem.tied_wire + problem.latency;
  TiedTails tails{.after_chain = problem.tied_add + transfer};
  if (rank == problem.rank_of[0]) tails.after_rank = tails.after_chain;
  if (rank == problem.rank_of[problem.stages - 1]) {
    tails.after_rank = transfer + tails.after_chain;
  }
  return tails;
}

}  // namespace penstock::coordinator::schedule
