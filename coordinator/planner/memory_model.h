// Bytes of one rank, to the byte, from shapes and the lowered program: what the
// stage daemon will allocate.
//
//   parameters        weights in two versions, packed matrices, step scalars
//   gradients         one a parameter; a tied embedding has a second one
//   optimizer         its state in two versions
//   activation_slots  slots x slot bytes, held places, of all chunks
//   transfer_slots    gradient slots, send buffers, local gradients
//   workspace         the largest chunk's, rotary tables, losses, and what the
//                     device's ops need beside their arguments
#ifndef PENSTOCK_COORDINATOR_PLANNER_MEMORY_MODEL_H_
#define PENSTOCK_COORDINATOR_PLANNER_MEMORY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/planner/chunk_memory.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/planner/parameter_sizes.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::planner {

enum class Optimizer { kAdamW, kSgd, kSgdMomentum };

// Bytes of the packed form of a weight matrix (in, out) on the job's device;
// null: nothing is packed.
using PackedBytes = std::function<int64_t(int64_t in, int64_t out)>;

// The ops of one rank.
struct RankOps {
  std::vector<ParameterGroup> products;  // Each sort of matrix once.
  bool blocks = false;
  bool head = false;
  int64_t largest_parameter = 0;  // Elements, of those that it owns.
  int threads = 1;                // Of computing.
};
// Bytes that the job's device keeps for ops beside their arguments; null: none.
using ScratchBytes = std::function<int64_t(
    const ModelShape& model, const BatchShape& batch, const RankOps& ops)>;

struct RankMemory {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activation_slots = 0;
  int64_t workspace = 0;
  int64_t transfer_slots = 0;
  // Of activation_slots: what is in flight at once in a step.
  int64_t peak_activation_bytes = 0;
  int peak_in_flight = 0;

  // What does not depend on the schedule.
  int64_t fixed() const {
    return parameters + gradients + optimizer + workspace;
  }
  int64_t total() const { return fixed() + activation_slots + transfer_slots; }
};

struct MemoryRequest {
  ModelShape model;
  BatchShape batch;
  int micro_batches = 1;
  Recompute recompute = Recompute::kNone;
  Optimizer optimizer = Optimizer::kAdamW;
  PackedBytes packed_bytes;
  ScratchBytes scratch_bytes;
  std::vector<int> threads;         // By rank; none: 1 each.
  std::vector<StageLayers> stages;  // By virtual stage.
};

// The fields of fixed() for a rank with these stages.
RankMemory PredictFixed(const MemoryRequest& request, int rank,
                        absl::Span<const int> stages);

// What a program's slots and places are made of, in the schedule room's words;
// no limits.
schedule::Memory SlotSizes(const MemoryRequest& request);

// Everything, for each rank of the program.
std::vector<RankMemory> PredictMemory(const MemoryRequest& request,
                                      const schedule::LoweredProgram& program);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_MEMORY_MODEL_H_
