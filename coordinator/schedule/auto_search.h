// The search of the automatic scheduler on one placement. Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_

#include <optional>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// An order, and what it takes by TimeOrders and PeakHeld.
struct FoundOrder {
  Orders orders;
  double makespan = 0;
};

struct SearchLimits {
  // StepLowerBound: an order that takes no longer ends the search.
  double bound = 0;
  // Orders that take longer are of no use.
  double known = 0;
};

// The best order found within the problem's budgets, or nothing where none
// fits or none takes less than `known`.
std::optional<FoundOrder> SearchOrder(const AutoProblem& problem,
                                      const SearchLimits& limits);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_SEARCH_H_
