// The search of the automatic scheduler on one placement. Internal to auto_*.
//
// First lists of preferences are played out (auto_list.h), the ones that most
// often win first, and the best one is replayed (auto_replay.h) where a rank
// has one stage. Then, where the step is small enough for them, beam searches
// (auto_beam.h), each wider than the one before, until one proves that nothing
// better is left.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_

#include <cstdint>
#include <optional>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// An order, and what it takes by TimeOrders.
struct FoundOrder {
  Orders orders;
  double makespan = 0;
};

struct SearchLimits {
  // StepLowerBound: an order that takes no longer ends the search.
  double bound = 0;
  // What is known already: orders that take no less are of no use.
  double known = 0;
  // Commands that lists and replays may play out; the first list always is.
  int64_t list_work = 0;
  // Cells of states that beams may look at.
  int64_t beam_work = 0;
};

// The best order found within the problem's budgets, or nothing where none
// fits or none takes less than `known`.
std::optional<FoundOrder> SearchOrder(const AutoProblem& problem,
                                      const SearchLimits& limits);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_
