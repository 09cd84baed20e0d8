// Which parameters a model has: names, shapes and how they start.
//
// Names and layouts are what Hugging Face's save_pretrained writes for
// GPT2LMHeadModel and LlamaForCausalLM. The canonical order is the pipeline's:
// embedding, blocks, head; a tied head is not listed. Everything here is a pure
// function of the ModelConfig.
#ifndef PENSTOCK_SERVER_MODEL_PARAMETER_SPEC_H_
#define PENSTOCK_SERVER_MODEL_PARAMETER_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/device/ops.h"
#include "server/device/tensor.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// How a parameter starts without a checkpoint (init.h).
enum class Initial { kNormal, kZeros, kOnes };

struct ParameterSpec {
  std::string name;     // "transformer.h.0.attn.c_attn.weight"
  device::Shape shape;  // As in the safetensors file.
  int64_t index = 0;    // Canonical: position in CanonicalParameters().
  Initial initial = Initial::kNormal;
  double initial_std = 0;  // kNormal only.

  // Weight decay acts on tensors of two or more dimensions only.
  bool decays() const { return shape.rank() >= 2; }
};

// What a layer uses as one tensor. The members lie one after the other without
// a gap, so that llama's q, k and v are rows of one (out, in) matrix and one
// product; each member is an ordinary parameter for optimizer, norm and files.
struct ParameterGroup {
  std::vector<ParameterSpec> members;  // At least one.
  device::Shape shape;                 // Of all members together.
  bool product = false;                // Used as a device::Weight.
  device::WeightLayout layout = device::WeightLayout::kInOut;  // If product.
  // The head's use of the token embedding's values, with a gradient of its
  // own. The member is the embedding's spec.
  bool tied_head = false;
};

// The groups of each layer, in the order that the layer's code numbers them.
std::vector<ParameterGroup> EmbeddingParameters(const ModelConfig& config);
std::vector<ParameterGroup> BlockParameters(const ModelConfig& config,
                                            int64_t block);
std::vector<ParameterGroup> HeadParameters(const ModelConfig& config);

// Every parameter of the model, spec.index ascending from 0.
std::vector<ParameterSpec> CanonicalParameters(const ModelConfig& config);

// Those that the stage with `ranges` owns: updates, reports, digests, writes.
// A tied head's copy is not owned. spec.index ascending.
std::vector<ParameterSpec> OwnedParameters(const ModelConfig& config,
                                           absl::Span<const LayerRange> ranges);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_PARAMETER_SPEC_H_
