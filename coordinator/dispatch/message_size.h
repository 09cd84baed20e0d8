// Whether what is said about one step fits into control messages. A message
// over gRPC's limit breaks the session, is sent again on the next one, and
// breaks that too; so a job whose messages would be too large is refused
// beforehand. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/planner/plan.h"

namespace penstock::coordinator::dispatch {

// gRPC's limit as common/rpc/grpc_settings.h sets it (the test holds the two
// together; there is no gRPC in this room).
inline constexpr int64_t kControlMessageBytes = int64_t{4} << 20;

// What decides the size of one rank's messages about a step.
struct StepSize {
  int64_t commands = 0;
  int64_t micro_batches = 0;
  int64_t stages = 1;      // Virtual, S.
  int64_t parameters = 0;  // Tensors of the model.
};

// At most so many bytes, whatever the values: of StepCommands, and of a
// StepReport with full timings and losses.
int64_t CommandsBytes(const StepSize& size);
int64_t ReportBytes(const StepSize& size);

// The larger of the two that a control message has room for.
int64_t RoomForStep();

// InvalidArgument at batch.micro_batch (common/status/key_path.h), with the
// bytes and about how many micro-batches fit. Before planning, by the fewest
// commands that any schedule has: a plan of millions of commands takes minutes.
absl::Status CheckStepFits(const planner::PlanRequest& request);
// The same of a plan, by the rank with most commands.
absl::Status CheckStepFits(const planner::PlanRequest& request,
                           const planner::Plan& plan);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_MESSAGE_SIZE_H_
