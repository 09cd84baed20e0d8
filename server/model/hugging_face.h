// The Hugging Face side of a model: config.json for a folder that transformers
// (4 and 5) loads as it is, and the names that its tensors may have.
#ifndef PENSTOCK_SERVER_MODEL_HUGGING_FACE_H_
#define PENSTOCK_SERVER_MODEL_HUGGING_FACE_H_

#include <string>

#include "server/model/model_config.h"

namespace penstock::server::model {

// The text of config.json: architecture, every key that decides the
// mathematics, in f32. Rotary settings are written both as transformers 4
// (rope_theta, rope_scaling) and as 5 (rope_parameters) reads them.
std::string HuggingFaceConfig(const ModelConfig& config);

// "transformer." or "model.": what a bare GPT2Model or LlamaModel lacks.
std::string NamePrefix(const ModelConfig& config);

// Canonical name of the token embedding.
std::string TokenEmbeddingName(const ModelConfig& config);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_HUGGING_FACE_H_
