#include "coordinator/schedule/auto_search.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "coordinator/schedule/auto_beam.h"
#include "coordinator/schedule/auto_list.h"
#include "coordinator/schedule/auto_replay.h"

namespace penstock::coordinator::schedule {
namespace {

using First = Preference::First;

// The most useful first: chosen one by one so that the best of those before it
// gains most over a few hundred random settings (auto_benchmark.cc prints what
// is left to gain).
constexpr Preference kPreferences[] = {
    {First::kTurns, 0, 0},       {First::kInput, 0, 0.25},
    {First::kTurns, 0.25, 0},    {First::kTurns, 0.5, 0.25},
    {First::kInput, 0, 0.75},    {First::kForward, 0.5, 0},
    {First::kTurns, 0.5, 0},     {First::kTurns, 0.25, 0.5},
    {First::kInput, 0.25, 0.25}, {First::kInput, 0, 0},
    {First::kTurns, 0.25, 0.25}, {First::kInput, 0.5, 0.75},
    {First::kTurns, 0, 0.5},     {First::kTurns, 1, 0},
    {First::kForward, 0, 0},     {First::kInput, 0.5, 0.5},
    {First::kTurns, 0.5, 0.75},  {First::kTurns, 1, 0.25},
    {First::kInput, 1, 1},       {First::kForward, 1, 0.25},
    {First::kInput, 0.25, 0},    {First::kTurns, 0, 0.25},
    {First::kTurns, 0.75, 0.5},  {First::kInput, 0, 1},
};

// How many of these are played with each split of own places.
constexpr int kSplitPreferences = 6;
// Where the best list is replayed fewer are enough: so many as they are, and so
// many with each split.
constexpr int kReplayedLists = 4;
constexpr int kReplayedSplits = 1;
// Rounds in vain after which commands are put later in the order, and by how
// many places at most.
constexpr int kRoundsInPlace = 4;
constexpr int kMostLater = 3;

// Pseudo-random numbers that are the same everywhere.
class Dice {
 public:
  int Below(int end) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(end));
  }
  // 0, or a multiple of 1/16 below 1.
  double Share() { return Below(16) / 16.0; }

 private:
  uint64_t state_ = 1;
};

class Search {
 public:
  Search(const AutoProblem& problem, const SearchLimits& limits)
      : problem_(problem),
        limits_(limits),
        list_work_(limits.list_work),
        beam_work_(limits.beam_work / StateWork()) {}

  std::optional<FoundOrder> Run() && {
    PlayLists();
    RunBeams();
    return std::move(best_);
  }

 private:
  int64_t commands() const {
    return int64_t{3} * problem_.stages * problem_.micro_batches;
  }
  // What looking at one state costs, in cells of it.
  int64_t StateWork() const {
    return problem_.stages * int64_t{16 + problem_.micro_batches};
  }
  double Known() const {
    return best_.has_value() ? std::min(limits_.known, best_->makespan)
                             : limits_.known;
  }
  bool Optimal() const { return Known() <= limits_.bound * (1 + kTolerance); }

  void PlayLists() {
    for (int i = 0; i < ListsToPlay(); ++i) {
      Play({.ranks = std::vector<Preference>(problem_.ranks, kPreferences[i])});
      if (Optimal() || !MayPlay()) break;
    }
    PlaySplits();
    if (WholeBackwardMayWin(problem_)) {
      Play({.ranks = std::vector<Preference>(problem_.ranks),
            .backward = Backward::kWhole});
    }
    if (MayReplay()) {
      ReplayLists();
    } else {
      Mix();
    }
    Shallower();
  }

  bool MayReplay() const { return problem_.chunks == 1; }
  int ListsToPlay() const {
    return MayReplay() ? kReplayedLists
                       : static_cast<int>(std::size(kPreferences));
  }

  // The same with places kept for what I adds, which else only get the room
  // that forwards have left, and for each stage.
  void PlaySplits() {
    if (problem_.places != Places::kOwn) return;
    using Slots = PlaceSplit::Slots;
    const int lists = MayReplay() ? kReplayedSplits : kSplitPreferences;
    for (const Slots slots : {Slots::kAsTaken, Slots::kEven, Slots::kByDepth}) {
      if (slots != Slots::kAsTaken && problem_.chunks == 1) break;
      for (const double share : {1.0, 0.5, 0.0}) {
        // As they have been played.
        if (slots == Slots::kAsTaken && share == 0) continue;
        for (int i = 0; i < lists; ++i) {
          if (Optimal() || !MayPlay()) return;
          Play({.ranks =
                    std::vector<Preference>(problem_.ranks, kPreferences[i]),
                .split = {.slots = slots, .held_share = share}});
        }
      }
    }
  }

  // Two lists are kept for Shallower().
  bool MayPlay() const { return list_work_ >= 3 * commands(); }

  // Replays the best list backwards and forwards, each time from what the last
  // one gave, though it be longer: that gets on better than going back.
  void ReplayLists() {
    Dice dice;
    Orders orders = std::move(list_orders_);
    int in_vain = 0;
    while (!orders.empty() && list_work_ >= 4 * commands() && !Optimal()) {
      const double known = Known();
      ReplayOptions options = AnyPatience(&dice);
      if (in_vain >= kRoundsInPlace) options.later = AnyPlaces(&dice);
      options.direction = ReplayOptions::Direction::kBackwards;
      orders = PlayAgain(orders, options);
      options.later.clear();
      options.direction = ReplayOptions::Direction::kForwards;
      if (!orders.empty()) orders = PlayAgain(orders, options);
      in_vain = Known() < known ? 0 : in_vain + 1;
    }
  }

  ReplayOptions AnyPatience(Dice* dice) const {
    constexpr double kShares[] = {0, 0.25, 0.5, 1};
    ReplayOptions options{.split = policy_.split};
    if (problem_.places == Places::kOwn && dice->Below(2) == 0) {
      options.split.held_share = kShares[dice->Below(std::size(kShares))];
    }
    options.patience.forward = kShares[dice->Below(std::size(kShares))];
    options.patience.input = kShares[dice->Below(std::size(kShares))];
    options.patience.weight = kShares[dice->Below(std::size(kShares))];
    return options;
  }

  std::vector<PerCommand> AnyPlaces(Dice* dice) const {
    const double most = dice->Below(kMostLater + 1);
    std::vector<PerCommand> later(problem_.ranks);
    for (PerCommand& rank : later) {
      rank = {most * dice->Share(), most * dice->Share(), most * dice->Share()};
    }
    return later;
  }

  // Nothing where the budgets are too small.
  Orders PlayAgain(const Orders& orders, const ReplayOptions& options) {
    list_work_ -= commands();
    ListResult result = Replay(problem_, orders, options);
    if (!result.finished) return {};
    result.makespan = TimeOrders(problem_, result.orders).makespan;
    if (result.makespan <= Known() * (1 - kTolerance)) {
      best_ = {.orders = result.orders, .makespan = result.makespan};
      best_policy_ = {};
    }
    return std::move(result.orders);
  }

  // Lists do not know what tied edges take.
  void CountTied(ListResult* result) const {
    if (!problem_.tied_edges) return;
    result->makespan = TimeOrders(problem_, result->orders).makespan;
  }

  // Gives some neighbouring ranks another preference, as long as that helps.
  void Mix() {
    if (policy_.ranks.empty()) return;
    Dice dice;
    while (MayPlay() && !Optimal()) {
      ListPolicy policy = policy_;
      const int first = dice.Below(problem_.ranks);
      const int last =
          std::min(problem_.ranks, first + 1 + dice.Below(problem_.ranks));
      const Preference& preference =
          kPreferences[dice.Below(std::size(kPreferences))];
      std::fill(policy.ranks.begin() + first, policy.ranks.begin() + last,
                preference);
      Play(policy);
    }
  }

  // Plays a list, which policy_ becomes where it is no longer.
  void Play(const ListPolicy& policy) {
    list_work_ -= commands();
    ListResult result = ScheduleList(problem_, policy);
    if (!result.finished) return;
    CountTied(&result);
    if (result.makespan <= policy_makespan_) {
      policy_ = policy;
      policy_makespan_ = result.makespan;
      if (MayReplay()) list_orders_ = result.orders;
    }
    if (result.makespan > Known() * (1 - kTolerance)) return;
    best_ = {.orders = std::move(result.orders), .makespan = result.makespan};
    best_policy_ = policy;
  }

  // The same step with fewer activations in flight, where that costs no time:
  // 2 K micro-batches on each rank are enough for most steps. Where they are,
  // 2 (K - r) - 1 on rank r are tried, which is enough for equal stages.
  void Shallower() {
    if (!best_.has_value() || list_work_ < 2 * commands()) return;
    for (const bool falling : {false, true}) {
      std::vector<int> most(problem_.ranks);
      for (int r = 0; r < problem_.ranks; ++r) {
        most[r] = problem_.chunks *
                  (falling ? 2 * (problem_.ranks - r) - 1 : 2 * problem_.ranks);
      }
      ListResult result = BestWithAtMost(most);
      if (!result.finished) return;
      CountTied(&result);
      if (result.makespan > best_->makespan * (1 + kTolerance)) return;
      best_ = {.orders = std::move(result.orders), .makespan = result.makespan};
    }
  }

  ListResult BestWithAtMost(const std::vector<int>& in_flight) const {
    if (best_policy_.ranks.empty()) {
      return Replay(problem_, best_->orders,
                    {.most_in_flight = in_flight, .split = policy_.split});
    }
    ListPolicy policy = best_policy_;
    for (int r = 0; r < problem_.ranks; ++r) {
      policy.ranks[r].most_in_flight = in_flight[r];
    }
    return ScheduleList(problem_, policy);
  }

  // Wider and wider, until one proves that there is nothing better.
  void RunBeams() {
    for (const int width : {16, 256, 16384}) {
      if (Optimal() || beam_work_ < 2 * commands()) return;
      BeamResult result = SearchBeam(
          problem_,
          {.width = width, .known = Known(), .most_work = beam_work_});
      beam_work_ -= result.work;
      if (result.found) {
        best_ = {.orders = std::move(result.orders),
                 .makespan = result.makespan};
      }
      if (result.exhausted) return;
    }
  }

  const AutoProblem& problem_;
  const SearchLimits& limits_;
  int64_t list_work_;  // Commands left,
  int64_t beam_work_;  // and states.
  std::optional<FoundOrder> best_;
  ListPolicy best_policy_;  // What made it, if a list did.
  // The best list, which Mix() changes and replays begin with, and what it
  // takes: no less than best_, which replays and mixtures may have bettered.
  ListPolicy policy_;
  double policy_makespan_ = kNever;
  Orders list_orders_;  // Those of policy_, where they can be replayed.
};

}  // namespace

std::optional<FoundOrder> SearchOrder(const AutoProblem& problem,
                                      const SearchLimits& limits) {
  return Search(problem, limits).Run();
}

}  // namespace penstock::coordinator::schedule
