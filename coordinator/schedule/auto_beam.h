// Beam search over partial steps. Internal to auto_*.
//
// A state is a step begun: how many F, I and W each stage has run, and the
// times that this left. It is extended by Giffler and Thompson's rule
// ("Algorithms for solving production-scheduling problems", 1960): of all
// commands that could come next the one that would end first decides the rank,
// and each command of that rank that could start before then is one way to go
// on. With one stage a rank some best order is among what this enumerates;
// where an I grows what is held that takes ranks that wait for another command
// (StateRules::WaitBit), which only wide beams look at. Of each generation the
// states with the least lower bounds are kept, none that another one dominates.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BEAM_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BEAM_H_

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

struct BeamOptions {
  int width = 1;     // Most states of a generation.
  double known = 0;  // What is to be beaten: longer steps are not looked at.
  // About how many states may be looked at: the width shrinks so that the
  // search gets to the end.
  int64_t most_work = 0;
};

struct BeamResult {
  bool found = false;  // A step shorter than `known`.
  // No state was left out for want of width, nor a command that had better
  // wait (narrow beams do not look at those): nothing better exists among what
  // is enumerated.
  bool exhausted = false;
  double makespan = 0;
  Orders orders;
  int64_t work = 0;  // States looked at.
};

BeamResult SearchBeam(const AutoProblem& problem, const BeamOptions& options);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BEAM_H_
