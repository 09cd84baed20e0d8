// Plays the step of an order out anew, forwards or backwards in time, so that
// gaps close. Internal to auto_*.
//
// Backwards, each command runs as late as its place in the order allows;
// forwards again, what was put off is no longer in the way of what is urgent.
// For project scheduling this is justification (Valls, Ballestin, Quintanilla,
// "Justification and RCPSP: a technique that pays", 2005).
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_REPLAY_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_REPLAY_H_

#include <vector>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_list.h"
#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// A value for each kind of command.
struct PerCommand {
  double forward = 0;
  double input = 0;
  double weight = 0;
};

struct ReplayOptions {
  enum class Direction { kForwards, kBackwards };
  Direction direction = Direction::kForwards;
  // A command is not begun where one that has an earlier place in the order is
  // known to become ready before this share of it is done.
  PerCommand patience;
  // (rank): places that its commands are put later in the order; empty: none.
  std::vector<PerCommand> later;
  // (rank): most activations in flight, F to W; empty: what fits.
  std::vector<int> most_in_flight;
  PlaceSplit split;  // Of no matter where places are shared.
};

// Plays the commands out in time order, each rank taking what is ready and has
// the first place in `orders`; a B there becomes I and W. Never passes a
// budget. Backwards the makespan is an upper bound of what the orders take.
// Deterministic.
//
// REQUIRES: one stage a rank, and orders with each command once, ascending.
ListResult Replay(const AutoProblem& problem, const Orders& orders,
                  const ReplayOptions& options);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_REPLAY_H_
