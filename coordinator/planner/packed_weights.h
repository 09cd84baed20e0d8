// How large a device's packed form of a weight matrix is, by numerics id: the
// id names the kernels, and those fix the form.
#ifndef PENSTOCK_COORDINATOR_PLANNER_PACKED_WEIGHTS_H_
#define PENSTOCK_COORDINATOR_PLANNER_PACKED_WEIGHTS_H_

#include "absl/strings/string_view.h"
#include "coordinator/planner/memory_model.h"

namespace penstock::coordinator::planner {

// cpu: both (in, out) and (out, in), columns rounded up to the level's panel,
// the whole to 16 floats. Null for devices that pack nothing, and for ids that
// are not known here.
PackedBytes PackedBytesOf(absl::string_view numerics_id);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_PACKED_WEIGHTS_H_
