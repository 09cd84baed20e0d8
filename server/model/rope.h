// The cosines and sines of rotary position embeddings (Su et al. 2021), with
// the scaling of frequencies that transformers' modeling_rope_utils.py defines.
#ifndef PENSTOCK_SERVER_MODEL_ROPE_H_
#define PENSTOCK_SERVER_MODEL_ROPE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// Inverse frequency of each of the head_dim / 2 pairs, rounded to f32 where
// transformers rounds it.
std::vector<float> InverseFrequencies(const ModelConfig& config);

// cosine[t * head_dim/2 + i] = cos(t * inverse_frequency[i]), sine likewise,
// for t in [0, seq). REQUIRES: both spans are seq * head_dim / 2 long.
void FillRopeTables(const ModelConfig& config, int64_t seq,
                    absl::Span<float> cosine, absl::Span<float> sine);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_ROPE_H_
