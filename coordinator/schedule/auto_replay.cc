#include "coordinator/schedule/auto_replay.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_earliest_rank.h"

namespace penstock::coordinator::schedule {
namespace {

using Direction = ReplayOptions::Direction;

// A stage's commands by what they do in the played time. Backwards the I go up
// from stage 0 and the F come back down, and a W is run before its I.
enum Kind { kUp, kDown, kWeight };
constexpr int kKinds = 3;

class Player {
 public:
  Player(const AutoProblem& problem, const Orders& orders,
         const ReplayOptions& options)
      : problem_(problem),
        options_(options),
        backwards_(options.direction == Direction::kBackwards),
        admission_(problem, Backward::kSplit, options.split),
        holding_(admission_.Begin()),
        micro_batches_(problem.micro_batches),
        stages_(problem.stages),
        wake_(problem.ranks) {
    for (int k = 0; k < kKinds; ++k) {
      places_[k].resize(problem.stages * micro_batches_);
    }
    for (int k : {kUp, kDown}) {
      arrivals_[k].assign(problem.stages * micro_batches_, kNever);
      ends_[k].resize(problem.stages * micro_batches_);
    }
    std::fill_n(arrivals_[kUp].begin(), micro_batches_, 0.0);
    std::fill_n(arrivals_[kDown].end() - micro_batches_, micro_batches_, 0.0);
    for (int s = 0; s < problem.stages; ++s) {
      SetDurations(s);
      SetPlaces(s, orders[problem.rank_of[s]]);
    }
    result_.orders.resize(problem.ranks);
    for (std::vector<Command>& order : result_.orders) {
      order.reserve(kKinds * micro_batches_);
    }
  }

  ListResult Run() && {
    int64_t left = int64_t{kKinds} * problem_.stages * micro_batches_;
    while (left > 0) {
      const double now = wake_.Least();
      if (now == kNever) return std::move(result_);
      const int rank = wake_.Find();
      const int s = problem_.stages_of[rank][0];
      const Choice choice = Decide(s, now);
      if (choice.begins) {
        Start(s, choice.kind, now);
        --left;
      } else {
        wake_.Set(rank, choice.retry);
      }
    }
    result_.finished = true;
    for (const Stage& stage : stages_) {
      result_.makespan = std::max(result_.makespan, stage.free);
    }
    if (backwards_) {
      for (std::vector<Command>& order : result_.orders) {
        std::reverse(order.begin(), order.end());
      }
    }
    return std::move(result_);
  }

 private:
  struct Stage {
    std::array<int, kKinds> begun = {};
    std::array<double, kKinds> durations = {};
    double free = 0;
  };
  // What could come next of one kind.
  struct Candidate {
    double ready = kNever;
    double place = kNever;
  };
  struct Choice {
    bool begins = false;
    Kind kind = kUp;
    double retry = kNever;  // Where nothing begins: when to look again.
  };

  size_t Cell(int stage, int count) const {
    return static_cast<size_t>(stage) * micro_batches_ + count;
  }
  // The micro-batch of a kind's command that is begun after `count` others.
  int MicroBatch(int count) const {
    return backwards_ ? micro_batches_ - 1 - count : count;
  }
  Op OpOf(Kind kind) const {
    if (kind == kWeight) return Op::kBackwardWeight;
    return (kind == kUp) == backwards_ ? Op::kBackwardInput : Op::kForward;
  }
  Kind KindOf(Op op) const {
    if (op == Op::kBackwardWeight) return kWeight;
    return (op == Op::kForward) == backwards_ ? kDown : kUp;
  }

  void SetDurations(int s) {
    for (const Kind kind : {kUp, kDown, kWeight}) {
      stages_[s].durations[kind] = problem_.times[s].of(OpOf(kind));
    }
  }

  void SetPlaces(int s, const std::vector<Command>& order) {
    PerCommand later;
    if (!options_.later.empty()) later = options_.later[problem_.rank_of[s]];
    double place = 0;
    const auto set = [&](Op op, int micro_batch) {
      const double more = op == Op::kForward         ? later.forward
                          : op == Op::kBackwardInput ? later.input
                                                     : later.weight;
      places_[KindOf(op)][Cell(s, MicroBatch(micro_batch))] = place + more;
      place += 1;
    };
    const auto set_command = [&](const Command& c) {
      if (c.op != Op::kBackward) return set(c.op, c.micro_batch);
      set(backwards_ ? Op::kBackwardWeight : Op::kBackwardInput, c.micro_batch);
      set(backwards_ ? Op::kBackwardInput : Op::kBackwardWeight, c.micro_batch);
    };
    if (backwards_) {
      std::for_each(order.rbegin(), order.rend(), set_command);
    } else {
      std::for_each(order.begin(), order.end(), set_command);
    }
  }

  double Wire(Kind kind) const {
    return OpOf(kind) == Op::kForward ? problem_.activation_wire
                                      : problem_.gradient_wire;
  }
  // The stage that a kind's message goes to in the played time, or kNone.
  int Target(Kind kind, int s) const {
    const int target = kind == kUp ? s + 1 : s - 1;
    return target < problem_.stages && target >= 0 ? target : kNone;
  }

  // When the next command of the kind has its message and, for its own, a send
  // buffer. Backwards it is the message that it takes whose buffer is used,
  // until it has ended.
  double Ready(Kind kind, int s) const {
    const int count = stages_[s].begun[kind];
    const int before = count - problem_.send_buffers;
    const double ready = arrivals_[kind][Cell(s, count)];
    if (before < 0) return ready;
    if (backwards_) {
      const bool takes = Target(kind == kUp ? kDown : kUp, s) != kNone;
      return takes ? std::max(ready, ends_[kind][Cell(s, before)] + Wire(kind) +
                                         problem_.latency)
                   : ready;
    }
    const int target = Target(kind, s);
    return target == kNone
               ? ready
               : std::max(ready, arrivals_[kind][Cell(target, before)]);
  }

  std::array<Candidate, kKinds> Candidates(int s, double now) const {
    const Stage& stage = stages_[s];
    std::array<Candidate, kKinds> next;
    // Where a command waits for a W, the W has its place.
    double urgent = kNever;
    const auto add = [&](Kind kind, bool allowed) {
      const double ready = Ready(kind, s);
      const double place = places_[kind][Cell(s, stage.begun[kind])];
      if (allowed) {
        next[kind] = {.ready = ready, .place = place};
      } else if (ready <= now) {
        urgent = std::min(urgent, place);
      }
    };
    if (stage.begun[kUp] < micro_batches_) add(kUp, AllowsUp(s));
    if (stage.begun[kDown] < stage.begun[kUp]) {
      add(kDown, backwards_ || admission_.AllowsInput(s, holding_));
    }
    if (AllowsWeight(s)) {
      next[kWeight] = {
          .ready = 0,
          .place = std::min(urgent,
                            places_[kWeight][Cell(s, stage.begun[kWeight])])};
    }
    return next;
  }

  bool AllowsUp(int s) const {
    const Stage& stage = stages_[s];
    if (backwards_) {
      return stage.begun[kUp] < stage.begun[kWeight] &&
             admission_.AllowsInputBackwards(s, holding_);
    }
    return HasPlaceInFlight(s, stage.begun[kUp] - stage.begun[kWeight]) &&
           admission_.AllowsForward(s, holding_);
  }
  bool AllowsWeight(int s) const {
    const Stage& stage = stages_[s];
    if (!backwards_) return stage.begun[kWeight] < stage.begun[kDown];
    return stage.begun[kWeight] < micro_batches_ &&
           HasPlaceInFlight(s, stage.begun[kWeight] - stage.begun[kDown]) &&
           admission_.AllowsWeightBackwards(s, holding_);
  }
  bool HasPlaceInFlight(int s, int in_flight) const {
    return options_.most_in_flight.empty() ||
           in_flight < options_.most_in_flight[problem_.rank_of[s]];
  }

  Choice Decide(int s, double now) const {
    const std::array<Candidate, kKinds> next = Candidates(s, now);
    Choice choice;
    double place = kNever;
    for (const Kind kind : {kUp, kDown, kWeight}) {
      if (next[kind].ready > now) {
        choice.retry = std::min(choice.retry, next[kind].ready);
      } else if (next[kind].place < place) {
        place = next[kind].place;
        choice.begins = true;
        choice.kind = kind;
      }
    }
    if (!choice.begins) return choice;
    double sooner = kNever;
    for (const Candidate& candidate : next) {
      if (candidate.ready > now && candidate.place < place) {
        sooner = std::min(sooner, candidate.ready);
      }
    }
    if (sooner - now <
        PatienceFor(choice.kind) * stages_[s].durations[choice.kind]) {
      return {.retry = sooner};
    }
    return choice;
  }

  double PatienceFor(Kind kind) const {
    const Op op = OpOf(kind);
    return op == Op::kForward         ? options_.patience.forward
           : op == Op::kBackwardInput ? options_.patience.input
                                      : options_.patience.weight;
  }

  void Start(int s, Kind kind, double now) {
    Stage& stage = stages_[s];
    const int rank = problem_.rank_of[s];
    const Op op = OpOf(kind);
    const int count = stage.begun[kind]++;
    stage.free = now + stage.durations[kind];
    wake_.Set(rank, stage.free);
    if (backwards_) {
      admission_.HoldBackwards(s, op, &holding_);
    } else {
      admission_.Hold(s, op, &holding_);
    }
    result_.orders[rank].push_back({op, s, MicroBatch(count)});
    if (kind == kWeight) return;
    ends_[kind][Cell(s, count)] = stage.free;
    if (const int target = Target(kind, s); target != kNone) {
      Send(kind, target, count, stage.free);
    }
  }

  void Send(Kind kind, int target, int count, double end) {
    std::vector<double>& arrivals = arrivals_[kind];
    const size_t cell = Cell(target, count);
    const double before = count == 0 ? 0 : arrivals[cell - 1];
    arrivals[cell] = problem_.Arrival(end, before, Wire(kind));
    const int rank = problem_.rank_of[target];
    const double wake = std::max(arrivals[cell], stages_[target].free);
    if (wake < wake_.Of(rank)) wake_.Set(rank, wake);
  }

  const AutoProblem& problem_;
  const ReplayOptions& options_;
  const bool backwards_;
  const Admission admission_;
  Holding holding_;
  const int micro_batches_;
  // (stage, count of the kind begun before it).
  std::array<std::vector<double>, kKinds> places_;
  std::array<std::vector<double>, kKinds> arrivals_;
  std::array<std::vector<double>, kKinds> ends_;
  std::vector<Stage> stages_;
  EarliestRank wake_;  // When each rank is next asked.
  ListResult result_;
};

}  // namespace

ListResult Replay(const AutoProblem& problem, const Orders& orders,
                  const ReplayOptions& options) {
  return Player(problem, orders, options).Run();
}

}  // namespace penstock::coordinator::schedule
