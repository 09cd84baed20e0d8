// DualPipe-V: two chunks on the V placement; in the steady state each rank
// takes a forward of one chunk with a backward of the other, then the other way
// round. Here these are separate commands, run one after the other: makespan
// 3M+K/2 at F = I = W, K >= 2. The paper's bubble, (K-1)(F&B+B-3W), is for a
// forward and a backward that run as one overlapped operation. A pair B1 B0 is
// split whole or not at all: the authors' program begins to split within that
// pair, B1 I0; its operations run one after the other would take 3M+(K-1)/2,
// half a forward less. Peak 2K+1 chunk activations.
// DeepSeek-V3, arXiv 2412.19437, cut in half: half the ranks, one copy of the
// parameters.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_DUALPIPE_V_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_DUALPIPE_V_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// InvalidArgument unless shape.chunks is 2 and M >= 2K.
absl::StatusOr<Schedule> GenerateDualpipeV(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_DUALPIPE_V_H_
