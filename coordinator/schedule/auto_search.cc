#include "coordinator/schedule/auto_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "coordinator/schedule/auto_beam.h"
#include "coordinator/schedule/auto_list.h"

namespace penstock::coordinator::schedule {
namespace {

// Commands that the lists may play out in all; the first list is always played.
constexpr int64_t kListWork = 300'000;
// Cells of states that the beams may look at in all.
constexpr int64_t kBeamWork = 10'000'000;
constexpr double kTolerance = 1e-9;

// How many chunk activations a rank may have in flight, beside its budget.
enum class Depth {
  kAll,     // What fits.
  kNoSpan,  // 2 (K - r) - 1 micro-batches, as zb-h2: enough for equal stages.
  kTwice,   // 2 K micro-batches: enough for most.
};

std::vector<int> MostInFlight(const AutoProblem& problem, Depth depth) {
  if (depth == Depth::kAll) return {};
  std::vector<int> most(problem.ranks, 2 * problem.ranks * problem.chunks);
  if (depth == Depth::kNoSpan) {
    for (int r = 0; r < problem.ranks; ++r) {
      most[r] = std::max(problem.chunks,
                         (2 * (problem.ranks - r) - 1) * problem.chunks);
    }
  }
  return most;
}

class Search {
 public:
  Search(const AutoProblem& problem, const SearchLimits& limits)
      : problem_(problem), limits_(limits) {}

  std::optional<FoundOrder> Run() && {
    PlayLists();
    RunBeams();
    if (!best_.has_value()) return std::nullopt;
    return std::move(best_);
  }

 private:
  int64_t commands() const {
    return int64_t{3} * problem_.stages * problem_.micro_batches;
  }
  bool Optimal() const {
    return best_.has_value() &&
           best_->makespan <= limits_.bound * (1 + kTolerance);
  }

  void PlayLists() {
    int64_t left = kListWork;
    if (WholeBackwardMayWin(problem_)) {
      Offer(ScheduleList(problem_, {.backward = Backward::kWhole}));
      left -= commands();
    }
    for (const Depth depth : {Depth::kAll, Depth::kTwice, Depth::kNoSpan}) {
      for (const ListPolicy::First first :
           {ListPolicy::First::kInput, ListPolicy::First::kTurns,
            ListPolicy::First::kForward}) {
        for (const double gap : {0.0, 0.5, 1.0}) {
          ListPolicy policy{.first = first, .least_gap = gap};
          policy.most_in_flight = MostInFlight(problem_, depth);
          Offer(ScheduleList(problem_, policy));
          left -= commands();
          if (left < commands() || Optimal()) return;
        }
      }
    }
  }

  // Wider and wider, until one proves that there is nothing better.
  void RunBeams() {
    int64_t left = kBeamWork / StateWork();
    for (const int width : {16, 256, 16384}) {
      if (Optimal() || left < 2 * commands()) return;
      BeamResult result = SearchBeam(
          problem_, {.width = width, .known = Known(), .most_work = left});
      left -= result.work;
      if (result.found) {
        best_ = {.orders = std::move(result.orders),
                 .makespan = result.makespan};
      }
      if (result.exhausted) return;
    }
  }

  double Known() const {
    return best_.has_value() ? std::min(limits_.known, best_->makespan)
                             : limits_.known;
  }

  // What looking at one state costs, in cells of it.
  int64_t StateWork() const {
    return problem_.stages * int64_t{16 + problem_.micro_batches};
  }

  void Offer(ListResult result) {
    if (!result.finished) return;
    if (problem_.tied_edges) {
      result.makespan = TimeOrders(problem_, result.orders).makespan;
    }
    if (result.makespan > limits_.known * (1 - kTolerance) ||
        (best_.has_value() &&
         result.makespan > best_->makespan * (1 - kTolerance))) {
      return;
    }
    best_ = {.orders = std::move(result.orders), .makespan = result.makespan};
  }

  const AutoProblem& problem_;
  const SearchLimits& limits_;
  std::optional<FoundOrder> best_;
};

}  // namespace

std::optional<FoundOrder> SearchOrder(const AutoProblem& problem,
                                      const SearchLimits& limits) {
  return Search(problem, limits).Run();
}

}  // namespace penstock::coordinator::schedule
