// Whether what is said about a job fits into control messages
// (common/rpc/message_limit.h). What would not fit is refused before it runs,
// where its key can be named. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/planner/plan.h"

namespace penstock::coordinator::dispatch {

// What is said about one step is held to far less than a message may take: it
// is made and read on the loops that heartbeats go through. (How large a plan
// may be is another limit: schedule/schedule.h.)
inline constexpr int64_t kStepBytes = int64_t{4} << 20;

// What decides the size of one rank's messages about a step.
struct StepSize {
  int64_t commands = 0;
  int64_t micro_batches = 0;
  int64_t stages = 1;  // Virtual, S.
};

// At most so many bytes, whatever the values: of StepCommands, and of a
// StepReport with full timings and losses but without its sums.
int64_t CommandsBytes(const StepSize& size);
int64_t ReportBytes(const StepSize& size);
// The larger of the two that there is room for.
int64_t RoomForStep();

// At most so many bytes of a rank's lists of its parameters, whatever their
// names: of StageReady, StepReport.sums or EndReport, whichever is largest.
int64_t ParameterListBytes(int64_t parameters);

// InvalidArgument at batch.micro_batch (common/status/key_path.h), with the
// bytes and about how many micro-batches fit. Before planning, by the fewest
// commands that any schedule has.
absl::Status CheckStepFits(const planner::PlanRequest& request);
// The same of a plan, by the rank with most commands; and at model.layers, by
// the rank with most layers.
absl::Status CheckFits(const planner::PlanRequest& request,
                       const planner::Plan& plan);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_
