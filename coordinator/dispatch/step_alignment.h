// One clock for the times that the ranks of a step measured, each since its own
// start. Pure.
//
// A rank's step ended when its report came, less the way here. On a loaded
// machine that way can be longer than a command, and a consumer would seem to
// run before its producer. What was sent says more: over an edge from rank a to
// rank b the consuming command starts after the producing one has ended. With
// messages in both directions (activations and gradients) that bounds b's start
// against a's from below and from above, and the arrival only decides in
// between.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_STEP_ALIGNMENT_H_
#define PENSTOCK_COORDINATOR_DISPATCH_STEP_ALIGNMENT_H_

#include <vector>

#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// A report and when it came.
struct TimedReport {
  v1::StepReport report;
  common::time::MonotonicTime arrived;
};

// When each rank's step began, by rank, on the coordinator's clock. Rank 0 is
// placed by its report's arrival, each further one by its own, moved into the
// interval that the messages with the ranks before it allow. Where the
// measurements contradict each other: halfway. REQUIRES: the reports are such
// as StepBarrier takes in.
std::vector<common::time::MonotonicTime> AlignStarts(
    const std::vector<TimedReport>& reports);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_STEP_ALIGNMENT_H_
