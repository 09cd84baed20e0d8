// How short a step can be at best, whatever the order: what the automatic
// scheduler measures itself by and stops at.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BOUND_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BOUND_H_

#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// No order of that many micro-batches on the placement has a shorter step, for
// the options' times, transfers, send buffers and memory limits. In the unit of
// the times.
//
// With H the forward chain before stage s, P its earliest first I, T the I
// chain after it (transfers included), k the micro-batches that fit its
// rank's limit, the largest over stages of
//   H + M (F + I + W)
//   P + M (I + W) + the M F less what fits between H and P: at most k of them,
//   no faster than the slowest rank above sends them
//   the larger of H + M F and P + those M F, then M I + (M - k) W + T + W of
//   stage 0
//   H + ceil(M / k) round trips, the last without its W but with T and W of
//   stage 0; before the second one the F, I and W of as many micro-batches as
//   are ahead of the last in its round
//   H + M periods of F and all of the way back; P + M periods of I, T and W of
//   stage 0: with one send buffer a period is a command and its transfer
// and what follows for a tied weight; for a rank with several stages its sums,
// its first H and its last P. The first three are the zero-bubble paper's (Qi
// et al., arXiv 2401.10241) with what limits and edges add.
//
// REQUIRES: options that fit the placement (CheckCosts, CheckMemory), costs
// given.
double StepLowerBound(int micro_batches, const Placement& placement,
                      const LoweringOptions& options);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_BOUND_H_
