// How much memory a device needs beside the model's tensors, by numerics id:
// the id names the kernels, and those fix it.
#ifndef PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_
#define PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "coordinator/planner/memory_model.h"

namespace penstock::coordinator::planner {

// How the products of a numerics id are cut (server/device/cpu/kernel_table.h;
// tests/integration/device_sizes_test.cc holds the two together).
struct KernelSizes {
  int64_t lanes = 0;  // Floats of a vector.
  int64_t panel = 0;  // Columns of a packed panel.
  int64_t kc = 0;     // Depth of a packed block of rows.
  int64_t mc = 0;     // Its rows.
};
// None for devices that pack nothing, and for ids that are not known here: an
// older or newer stage's, whose sizes nobody can tell.
std::optional<KernelSizes> KernelSizesOf(absl::string_view numerics_id);

// cpu: both (in, out) and (out, in), columns rounded up to the level's panel,
// the whole to 16 floats. Null where KernelSizesOf() has none.
PackedBytes PackedBytesOf(absl::string_view numerics_id);

// cpu: the largest packed factor of a weight gradient, and for each thread
// the larger of a packed block of rows and one head's attention. Null as above.
ScratchBytes ScratchBytesOf(absl::string_view numerics_id);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_DEVICE_SIZES_H_
