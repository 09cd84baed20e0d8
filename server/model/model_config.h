// What the model is: the numbers that a stage needs to build its layers. The
// coordinator fills it from the job file and config.json and sends it at
// assembly; stages never read config.json.
#ifndef PENSTOCK_SERVER_MODEL_MODEL_CONFIG_H_
#define PENSTOCK_SERVER_MODEL_MODEL_CONFIG_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock::server::model {

enum class Family { kGpt2, kLlama };

// How rotary frequencies are stretched beyond the context that the model was
// first trained with, as transformers' modeling_rope_utils does it.
enum class RopeScalingKind {
  kNone,    // transformers: "default"
  kLinear,  // Every frequency divided by `factor`.
  kLlama3,  // Low frequencies divided by `factor`, high ones kept, smooth
            // between.
};
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;
  // kLlama3 only:
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_context = 8192;  // original_max_position_embeddings

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

// The embedding and three sites of each block are numbered in the 16 bits that
// a dropout site has in a mask's key (layer.h).
inline constexpr int64_t kMaxLayers = 21845;

// Immutable once filled; a plain value.
struct ModelConfig {
  Family family = Family::kGpt2;
  int64_t layers = 0;  // Blocks; at most kMaxLayers.
  int64_t width = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;   // gpt2: = heads. Divides heads.
  int64_t head_dim = 0;   // gpt2: width / heads. llama: even, any.
  int64_t ffn_width = 0;  // Inner width of the MLP.
  int64_t context = 0;    // Longest sequence; gpt2: learned positions.
  int64_t vocab = 0;
  bool tied = true;    // The head's matrix is the token embedding.
  double dropout = 0;  // In [0, 1); the same at every site of the family.
  double norm_eps = 1e-5;
  double rope_theta = 10000;  // llama only, as rope_scaling.
  RopeScaling rope_scaling;
  double init_std = 0.02;

  // Of the projections of blocks.
  bool has_bias() const { return family == Family::kGpt2; }
  // The rate where `dropout` acts on what is added to the residual, and on the
  // embedding's sum: llama has it for attention's probabilities alone.
  double residual_dropout() const {
    return family == Family::kGpt2 ? dropout : 0;
  }

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// OK, or InvalidArgument that names the field, its value and the rule. What a
// stage checks before it builds layers from a message.
absl::Status Validate(const ModelConfig& config);

// One micro-batch: `batch` sequences of `seq` positions. Everything in a stage
// has one batch shape for the whole job.
struct BatchShape {
  int64_t batch = 0;
  int64_t seq = 0;
  int64_t rows() const { return batch * seq; }
};

// A consecutive run of the pipeline's layers [embedding] blocks [head]: what
// one virtual stage holds. Any of the three parts may be absent, not all.
struct LayerRange {
  bool embedding = false;
  int64_t first_block = 0;
  int64_t end_block = 0;  // Half-open.
  bool head = false;      // Final norm, projection and loss.

  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_MODEL_CONFIG_H_
