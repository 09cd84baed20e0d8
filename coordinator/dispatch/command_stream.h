// Plan -> what each rank is told to do in a step. The order is the verified
// program's; nothing is chosen here.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_COMMAND_STREAM_H_
#define PENSTOCK_COORDINATOR_DISPATCH_COMMAND_STREAM_H_

#include <cstdint>

#include "coordinator/schedule/instruction.h"
#include "coordinator/schedule/lowered_program.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// One training step of `rank`, in one message.
v1::StepCommands TrainCommands(const schedule::LoweredProgram& program,
                               int rank, int64_t step, bool full_timings);

// Forwards of `micro_batches` validation micro-batches on V[step], in groups as
// schedule::ForwardGroup gives them (forward_order.h).
v1::StepCommands EvaluateCommands(const schedule::LoweredProgram& program,
                                  int rank, int64_t step, int micro_batches,
                                  int group);

// Whether the reports of `step` carry every op's times: the first three, every
// tenth, and the last.
bool CarriesFullTimings(int64_t step, int64_t steps);

v1::Op OpToProto(schedule::Op op);
v1::Edge EdgeToProto(const schedule::Edge& edge);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_COMMAND_STREAM_H_
