// Bytes that a virtual stage's layers need for one micro-batch, from shapes.
#ifndef PENSTOCK_COORDINATOR_PLANNER_CHUNK_MEMORY_H_
#define PENSTOCK_COORDINATOR_PLANNER_CHUNK_MEMORY_H_

#include <cstdint>

#include "coordinator/planner/model_shape.h"

namespace penstock::coordinator::planner {

// Every tensor and every block of memory starts at a multiple of this.
inline constexpr int64_t kAlignment = 64;
int64_t Aligned(int64_t bytes);

struct ChunkMemory {
  int64_t slot = 0;       // An activation in flight, from F to B or W.
  int64_t held = 0;       // In addition, between a split I and its W.
  int64_t workspace = 0;  // Within one command; a rank needs the largest.
  int64_t constants = 0;  // Rotary tables.
  int64_t boundary = 0;   // One activation or gradient between stages.
};
ChunkMemory PredictChunk(const ModelShape& model, const BatchShape& batch,
                         const StageLayers& layers, Recompute recompute);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_CHUNK_MEMORY_H_
