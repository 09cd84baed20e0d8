#include "coordinator/schedule/capacity.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/memory_use.h"
#include "coordinator/schedule/slot_count.h"

namespace penstock::coordinator::schedule {
namespace {

// Relative to the longest operation: commands are taken to last at least
// kLeastTime, so that no wait of length zero hides a cycle, and times closer
// than kTolerance are equal.
constexpr double kLeastTime = 1e-6;
constexpr double kTolerance = 1e-9;

// A rank's first and last command, and how long all of them take.
struct RankSpan {
  int first = kNone;  // Step.
  int last = kNone;   // Step.
  double busy = 0;
};

class CapacitySearch {
 public:
  CapacitySearch(LoweredProgram* program, Dataflow dataflow,
                 Durations durations, const Memory& memory)
      : program_(*program),
        flow_(std::move(dataflow)),
        durations_(std::move(durations)),
        memory_(memory) {
    double longest = 0;
    for (const double time : durations_.step) longest = std::max(longest, time);
    if (longest <= 0) longest = 1;
    tolerance_ = kTolerance * longest;
    spans_.resize(program_.ranks());
    for (int i = 0; i < flow_.step_count(); ++i) {
      if (StepAt(i).kind != StepKind::kCompute) continue;
      durations_.step[i] = std::max(durations_.step[i], kLeastTime * longest);
      RankSpan& span = spans_[flow_.rank_of(i)];
      if (span.first == kNone) span.first = i;
      span.last = i;
      span.busy += durations_.step[i];
    }
    for (const StageSlots& stage : program_.stages) {
      own_slots_.push_back(stage.slots);
    }
    base_slots_ = own_slots_;
  }

  absl::Status Run() {
    flow_.RemoveCredits();
    unlimited_ = Evaluate(flow_, durations_);
    CHECK(unlimited_.finished) << program_.name << " passed CheckOrder";
    ComputeNeeds();

    int low = 0;
    int high = 1;
    for (const int need : needs_) high = std::max(high, need);
    bool kept = false;  // By `high`, as far as it was tried.
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (CostsNothing(middle)) {
        high = middle;
        kept = true;
      } else {
        low = middle + 1;
      }
    }
    while (!kept && !CostsNothing(high)) {
      // Only rounding can bring us here; with M slots nothing waits.
      CHECK_LE(high, program_.micro_batches + 1) << program_.name;
      for (int& need : needs_) ++need;
      ++high;
    }
    bound_.assign(program_.ranks(), high);
    Apply();
    return memory_.limits.empty() ? absl::OkStatus() : FitMemory(high);
  }

 private:
  const LoweredStep& StepAt(int step) const {
    return program_.steps[flow_.rank_of(step)][flow_.position_of(step)];
  }

  // By when each message's transfer must begin for the unlimited step, never
  // earlier than it did there.
  std::vector<double> LatestBegins(int edge) const {
    const int begin = flow_.edge_begin(edge);
    const int count = flow_.edge_begin(edge + 1) - begin;
    const int buffers = flow_.send_buffers(edge);
    std::vector<double> latest(count);
    double next = std::numeric_limits<double>::infinity();
    for (int j = count - 1; j >= 0; --j) {
      const Message& message = flow_.messages()[begin + j];
      double arrival = unlimited_.start[message.consumer];
      if (buffers == 0) {
        arrival = unlimited_.arrival[begin + j];
      } else if (j + buffers < count) {
        const int reuser = flow_.messages()[begin + j + buffers].producer;
        arrival = std::min(arrival, unlimited_.start[reuser]);
      }
      const double wire = durations_.wire[edge];
      next = std::min(arrival - durations_.latency[edge], next) - wire;
      latest[j] = std::max(next, unlimited_.begin[begin + j]);
      next = latest[j];
    }
    return latest;
  }

  void ComputeNeeds() {
    for (int e = 0; e < flow_.edge_count(); ++e) {
      const std::vector<double> latest = LatestBegins(e);
      needs_.push_back(program_.edges[e].lands_in_stash ? StashNeed(e, latest)
                                                        : SlotNeed(e, latest));
    }
  }

  // Slots of a gradient or tied edge: message j needs one more than there are
  // earlier messages whose slot is not free by then.
  int SlotNeed(int edge, const std::vector<double>& latest) const {
    const int begin = flow_.edge_begin(edge);
    int need = 1;
    int freed = 0;
    for (int j = 0; j < static_cast<int>(latest.size()); ++j) {
      while (freed < j &&
             unlimited_.complete[flow_.messages()[begin + freed].consumer] <=
                 latest[j] + tolerance_) {
        ++freed;
      }
      need = std::max(need, j - freed + 1);
    }
    return need;
  }

  // Slots ahead for the stage that the edge leads to: the least n for which
  // the occupant before each message is gone in time.
  int StashNeed(int edge, const std::vector<double>& latest) {
    const int stage = program_.edges[edge].target_stage;
    const int n = LeastSlots(
        StashUses(edge, latest),
        {.least = own_slots_[stage], .most = program_.micro_batches});
    // In another order fewer slots may be worse in other ways than waiting: the
    // common bound leaves such a stage as it is. Only for a memory limit it
    // goes back to what its own order needs.
    if (!Ascending(edge)) base_slots_[stage] = n;
    return n - base_slots_[stage];
  }

  // For each message from when to when its slot is not free for another, as
  // positions of messages on the edge.
  std::vector<Use> StashUses(int edge,
                             const std::vector<double>& latest) const {
    const int stage = program_.edges[edge].target_stage;
    const int rank = program_.edges[edge].target_rank;
    std::vector<int> release(program_.micro_batches, kNone);
    for (int i = flow_.rank_begin(rank); i < flow_.rank_begin(rank + 1); ++i) {
      if (StepAt(i).releases_stash() && StepAt(i).command.stage == stage) {
        release[StepAt(i).command.micro_batch] = i;
      }
    }
    const int count = static_cast<int>(latest.size());
    const auto consumer = [&](int j) {
      return flow_.messages()[flow_.edge_begin(edge) + j].consumer;
    };
    std::vector<Use> uses;
    for (int j = 0; j < count; ++j) {
      const int m = StepAt(consumer(j)).command.micro_batch;
      const double released = unlimited_.complete[release[m]];
      // The first message after it that is late enough, as all after that are.
      int free = j + 1, end = count;
      while (free < end) {
        const int middle = free + (end - free) / 2;
        if (release[m] > consumer(middle) ||
            released > latest[middle] + tolerance_) {
          free = middle + 1;
        } else {
          end = middle;
        }
      }
      uses.push_back({.number = m, .from = j, .to = free - 1});
    }
    return uses;
  }

  bool Ascending(int edge) const {
    int last = -1;
    for (int i = flow_.edge_begin(edge); i < flow_.edge_begin(edge + 1); ++i) {
      const int m = StepAt(flow_.messages()[i].consumer).command.micro_batch;
      if (m < last) return false;
      last = m;
    }
    return true;
  }

  // Writes the capacities for the current bounds into the program.
  void Apply() {
    for (int e = 0; e < static_cast<int>(program_.edges.size()); ++e) {
      ApplyTo(e);
    }
  }

  void ApplyTo(int e) {
    Edge& edge = program_.edges[e];
    const int bound = bound_[edge.target_rank];
    if (edge.lands_in_stash) {
      StageSlots& stage = program_.stages[edge.target_stage];
      stage.slots =
          std::min(program_.micro_batches,
                   base_slots_[edge.target_stage] + std::min(needs_[e], bound));
      edge.capacity = stage.slots;
    } else {
      edge.capacity = std::max(1, std::min(needs_[e], bound));
    }
  }

  void ApplyBounds() {
    Apply();
    flow_.SetCredits(program_);
  }

  // The step is no longer, and the span bubble, which is reported beside it, no
  // larger.
  bool CostsNothing(int bound) {
    bound_.assign(program_.ranks(), bound);
    ApplyBounds();
    const double latest = unlimited_.makespan * (1 + kTolerance);
    bounded_ = Evaluate(flow_, durations_,
                        {.latest = latest, .storage = std::move(bounded_)});
    return bounded_.finished && bounded_.makespan <= latest &&
           SpanBubble(bounded_) <= SpanBubble(unlimited_) + tolerance_;
  }

  // The longest that a rank is idle between its first command and its last: as
  // Simulation::span_bubble_rate, but a time.
  double SpanBubble(const Evaluation& evaluation) const {
    double longest = 0;
    for (const RankSpan& rank : spans_) {
      longest = std::max(longest, evaluation.end[rank.last] -
                                      evaluation.start[rank.first] - rank.busy);
    }
    return longest;
  }

  // Lowers each rank's bound, from `bound`, to the largest whose bytes fit;
  // where none does, with the fewest slots also for stages that the bound
  // leaves alone.
  absl::Status FitMemory(int bound) {
    const std::vector<RankParts> parts = PartsOfRanks(program_);
    for (int r = 0; r < program_.ranks(); ++r) {
      const int64_t limit = memory_.limits[r];
      const auto bytes_at = [&](int rank_bound) {
        bound_[r] = rank_bound;
        for (const int edge : parts[r].receives) ApplyTo(edge);
        return MemoryUseOf(program_, r, parts[r], memory_).total();
      };
      if (bytes_at(bound) <= limit) continue;
      if (bytes_at(0) > limit) {
        for (const int s : parts[r].stages) base_slots_[s] = own_slots_[s];
      }
      if (const int64_t least = bytes_at(0); least > limit) {
        return absl::ResourceExhaustedError(
            absl::StrCat(program_.name, ": rank ", r, " needs ", least,
                         " bytes with the fewest slots, ", least - limit,
                         " more than its limit of ", limit));
      }
      int fits = 0;
      int over = bound + 1;
      while (over - fits > 1) {
        const int middle = fits + (over - fits) / 2;
        (bytes_at(middle) <= limit ? fits : over) = middle;
      }
      bytes_at(fits);
    }
    ApplyBounds();
    const Evaluation evaluation = Evaluate(flow_, durations_);
    if (evaluation.finished) return absl::OkStatus();
    const Deadlock deadlock = ExplainDeadlock(program_, flow_, evaluation);
    return absl::ResourceExhaustedError(absl::StrCat(
        program_.name,
        ": the slots that fit in the memory limits deadlock; rank ",
        deadlock.rank, " has a limit of ", memory_.limits[deadlock.rank],
        " bytes; ", deadlock.text));
  }

  LoweredProgram& program_;
  Dataflow flow_;
  Durations durations_;
  const Memory& memory_;
  double tolerance_ = 0;
  std::vector<RankSpan> spans_;  // (rank)
  Evaluation unlimited_;
  Evaluation bounded_;           // By the bounds that were tried last.
  std::vector<int> own_slots_;   // (stage): below this a rank stops by itself.
  std::vector<int> base_slots_;  // (stage): what slots ahead are added to.
  std::vector<int> needs_;       // (edge): slots ahead, or slots.
  std::vector<int> bound_;       // (rank): most of them.
};

}  // namespace

absl::Status SetCapacities(LoweredProgram* program, const Costs& costs,
                           const Memory& memory) {
  ASSIGN_OR_RETURN(Dataflow dataflow, Dataflow::Build(*program));
  Durations durations = DurationsOf(*program, costs);
  return CapacitySearch(program, std::move(dataflow), std::move(durations),
                        memory)
      .Run();
}

}  // namespace penstock::coordinator::schedule
