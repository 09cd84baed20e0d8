// How much memory a device needs beside the model's tensors, by numerics id:
// the id names the kernels, and those fix it.
#ifndef PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_
#define PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_

#include "absl/strings/string_view.h"
#include "coordinator/planner/memory_model.h"

namespace penstock::coordinator::planner {

// cpu: both (in, out) and (out, in), columns rounded up to the level's panel,
// the whole to 16 floats. Null for devices that pack nothing, and for ids that
// are not known here.
PackedBytes PackedBytesOf(absl::string_view numerics_id);

// cpu: the largest packed factor of a weight gradient, and for each thread
// the larger of a packed block of rows and one head's attention. Null as above.
ScratchBytes ScratchBytesOf(absl::string_view numerics_id);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_
