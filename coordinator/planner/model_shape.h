// The numbers of a model that its cost and memory follow from. The caller fills
// it from the job file; the planner knows neither files nor messages.
#ifndef PENSTOCK_COORDINATOR_PLANNER_MODEL_SHAPE_H_
#define PENSTOCK_COORDINATOR_PLANNER_MODEL_SHAPE_H_

#include <cstdint>

namespace penstock::coordinator::planner {

enum class Family { kGpt2, kLlama };

struct ModelShape {
  Family family = Family::kGpt2;
  int64_t layers = 0;  // L, blocks.
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_width = 0;
  int64_t context = 0;  // gpt2: rows of the position table.
  int64_t vocab = 0;
  bool tied = true;      // The head's matrix is the embedding's.
  bool dropout = false;  // Its rate is above 0.
};

// What backward finds of forward's: everything, or each layer's input, of which
// the layer is done once more.
enum class Recompute { kNone, kFull };

// One micro-batch.
struct BatchShape {
  int64_t micro_batch = 0;      // Bµ, sequences.
  int64_t sequence_length = 0;  // Tokens.
  int64_t rows() const { return micro_batch * sequence_length; }
};

// The consecutive layers of one virtual stage.
struct StageLayers {
  int64_t first_block = 0;
  int64_t end_block = 0;  // Half-open.
  bool embedding = false;
  bool head = false;  // Final norm, projection, loss.
  int64_t blocks() const { return end_block - first_block; }

  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_MODEL_SHAPE_H_
