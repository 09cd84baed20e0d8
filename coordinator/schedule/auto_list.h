// List scheduling: plays a step out in time order, each rank deciding by fixed
// preferences when it is free. Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LIST_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LIST_H_

#include <vector>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// What a rank that is free prefers.
struct Preference {
  enum class First {
    kInput,    // I before F.
    kForward,  // F before I.
    kTurns,    // Whichever of the two was not the last.
  };
  First first = First::kInput;
  // A W is not begun where an F or I is known to become ready before this share
  // of it is done; the rank waits instead.
  double least_gap = 0;
  // The same of an F where an I is known to become ready.
  double least_forward_gap = 0;
  // Most chunk activations in flight, F to W, beside what fits.
  int most_in_flight = kAll;
  static constexpr int kAll = 1 << 30;
};

struct ListPolicy {
  std::vector<Preference> ranks;  // One entry a rank.
  // kWhole: one B instead of I and W. Less memory where W needs more than F
  // leaves.
  Backward backward = Backward::kSplit;
  PlaceSplit split;
};

struct ListResult {
  bool finished = false;  // Else the budgets are too small for this.
  // Without tied edges. Where a rank waited in vain TimeOrders says less.
  double makespan = 0;
  Orders orders;
};

// Never passes a budget and, where one micro-batch alone fits each budget,
// never gets stuck. Deterministic; ties go to the lower rank.
ListResult ScheduleList(const AutoProblem& problem, const ListPolicy& policy);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_LIST_H_
