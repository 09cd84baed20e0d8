#include "coordinator/schedule/auto_beam.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/schedule/auto_state.h"

namespace penstock::coordinator::schedule {
namespace {

// Children of a state, about.
constexpr int kBranches = 2;
// Narrower beams would be full of states that wait in vain.
constexpr int kWaitingWidth = 100;
// States of one generation that a new one is compared with.
constexpr int kCompared = 16;

// How a state came about: the tree of all that were kept.
struct Origin {
  int parent = -1;  // Index of its Origin.
  Command command;
};

struct Child {
  int parent = 0;  // In the generation.
  NextCommand next;
  uint64_t waits = 0;  // Of the state before it.
  StateScore score;
};

bool Better(const Child& a, const Child& b) {
  if (a.score.bound != b.score.bound) return a.score.bound < b.score.bound;
  if (a.score.total != b.score.total) return a.score.total < b.score.total;
  if (a.parent != b.parent) return a.parent < b.parent;
  if (a.waits != b.waits) return a.waits < b.waits;
  if (a.next.stage != b.next.stage) return a.next.stage < b.next.stage;
  return a.next.op < b.next.op;
}

class Beam {
 public:
  Beam(const AutoProblem& problem, const BeamOptions& options)
      : rules_(problem), problem_(problem), options_(options) {
    best_ = options.known;
  }

  BeamResult Run() && {
    generation_.push_back(rules_.Begin());
    origins_.push_back({});
    origin_of_.push_back(0);
    const int64_t commands =
        int64_t{3} * problem_.stages * problem_.micro_batches;
    for (int64_t i = 0; i < commands && !generation_.empty(); ++i) {
      Extend();
      const int64_t left = (options_.most_work - result_.work) / (commands - i);
      Keep(std::clamp<int64_t>(left / kBranches, 1, options_.width));
    }
    Finish();
    result_.exhausted = !left_out_;
    return std::move(result_);
  }

 private:
  // All children that may lead to a shorter step.
  void Extend() {
    children_.clear();
    for (size_t i = 0; i < generation_.size(); ++i) {
      StepState& state = generation_[i];
      const uint64_t waits = state.waits;
      uint64_t waiting = FindConflict(state);
      AddChildren(i);
      // The same again without what had better wait.
      left_out_ |= waiting != 0 && options_.width < kWaitingWidth;
      while (waiting != 0 && options_.width >= kWaitingWidth) {
        state.waits |= waiting;
        waiting = FindConflict(state);
        AddChildren(i);
      }
      state.waits = waits;
    }
  }

  void AddChildren(size_t parent) {
    StepState& state = generation_[parent];
    for (const NextCommand& next : conflict_) {
      const StateBefore before = rules_.Before(next, state);
      rules_.Run(next, &state);
      const StateScore score = rules_.Score(state, &scratch_);
      rules_.Undo(next, before, &state);
      ++result_.work;
      if (score.bound < best_ * (1 - kTolerance)) {
        children_.push_back({.parent = static_cast<int>(parent),
                             .next = next,
                             .waits = before.waits,
                             .score = score});
      }
    }
  }

  // Fills conflict_. Returns the bit of waits that leaves one of it for later,
  // or 0.
  uint64_t FindConflict(const StepState& state) {
    double end = kNever;
    int rank = -1;
    for (int r = 0; r < problem_.ranks; ++r) {
      next_.clear();
      rules_.AppendNext(state, r, &next_);
      for (const NextCommand& next : next_) {
        if (next.end < end) {
          end = next.end;
          rank = r;
        }
      }
    }
    conflict_.clear();
    if (rank < 0) return 0;
    next_.clear();
    rules_.AppendNext(state, rank, &next_);
    uint64_t waits = 0;
    for (const NextCommand& next : next_) {
      if (next.start < end || next.end <= end) {
        conflict_.push_back(next);
        if (waits == 0) waits = rules_.WaitBit(state, next);
      }
    }
    return waits;
  }

  // The best of the children become the generation.
  void Keep(size_t width) {
    // Some are dominated: look at more than are kept.
    const size_t looked_at = std::min(children_.size(), 4 * width);
    if (looked_at < children_.size()) {
      std::nth_element(children_.begin(), children_.begin() + looked_at,
                       children_.end(), Better);
      children_.resize(looked_at);
      left_out_ = true;
    }
    std::sort(children_.begin(), children_.end(), Better);
    kept_.clear();
    kept_origins_.clear();
    by_counts_.clear();
    for (const Child& child : children_) {
      if (kept_.size() == width) {
        left_out_ = true;
        break;
      }
      kept_.push_back(generation_[child.parent]);
      kept_.back().waits = child.waits;
      rules_.Run(child.next, &kept_.back());
      if (kept_.back().left > 0 && IsDominated()) {
        kept_.pop_back();
        continue;
      }
      const int origin = AddOrigin(child);
      if (kept_.back().left == 0) {
        Complete(kept_.back(), origin);
        kept_.pop_back();
      } else {
        kept_origins_.push_back(origin);
      }
    }
    generation_.swap(kept_);
    origin_of_.swap(kept_origins_);
  }

  int AddOrigin(const Child& child) {
    const Op op = child.next.op;
    const StageCounts& before =
        generation_[child.parent].counts[child.next.stage];
    const int micro_batch = op == Op::kForward          ? before.forwards
                            : op == Op::kBackwardWeight ? before.weights
                                                        : before.inputs;
    origins_.push_back({.parent = origin_of_[child.parent],
                        .command = {op, child.next.stage, micro_batch}});
    return static_cast<int>(origins_.size()) - 1;
  }

  // The last of kept_ by one before it; else it is listed.
  bool IsDominated() {
    const StepState& state = kept_.back();
    uint64_t hash = 0;
    for (const StageCounts& counts : state.counts) {
      for (const int16_t count :
           {counts.forwards, counts.inputs, counts.weights}) {
        hash = (hash ^ static_cast<uint64_t>(count)) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
      }
    }
    std::vector<int>& same = by_counts_[hash];
    for (const int i : same) {
      if (rules_.Dominates(kept_[i], state)) return true;
    }
    if (same.size() < kCompared) {
      same.push_back(static_cast<int>(kept_.size()) - 1);
    }
    return false;
  }

  // Of steps that are complete the best one is kept as the result.
  void Complete(const StepState& state, int origin) {
    const double makespan =
        *std::max_element(state.free.begin(), state.free.end());
    if (complete_ >= 0 && makespan >= result_.makespan) return;
    result_.makespan = makespan;
    complete_ = origin;
    if (!problem_.tied_edges) best_ = std::min(best_, makespan);
  }

  void Finish() {
    if (complete_ < 0) return;
    result_.orders.resize(problem_.ranks);
    for (int o = complete_; origins_[o].parent >= 0; o = origins_[o].parent) {
      const Command& command = origins_[o].command;
      result_.orders[problem_.rank_of[command.stage]].push_back(command);
    }
    for (std::vector<Command>& order : result_.orders) {
      std::reverse(order.begin(), order.end());
    }
    if (problem_.tied_edges) {
      result_.makespan = TimeOrders(problem_, result_.orders).makespan;
    }
    result_.found = result_.makespan < options_.known * (1 - kTolerance);
  }

  const StateRules rules_;
  const AutoProblem& problem_;
  const BeamOptions& options_;
  double best_ = 0;
  bool left_out_ = false;
  int complete_ = -1;  // The result's Origin.
  std::vector<StepState> generation_;
  std::vector<int> origin_of_;  // (generation): index in origins_.
  std::vector<StepState> kept_;
  std::vector<int> kept_origins_;
  std::vector<Origin> origins_;
  std::vector<Child> children_;
  std::vector<NextCommand> next_;
  std::vector<NextCommand> conflict_;
  std::unordered_map<uint64_t, std::vector<int>> by_counts_;
  ScoreScratch scratch_;
  BeamResult result_;
};

}  // namespace

BeamResult SearchBeam(const AutoProblem& problem, const BeamOptions& options) {
  return Beam(problem, options).Run();
}

}  // namespace penstock::coordinator::schedule
