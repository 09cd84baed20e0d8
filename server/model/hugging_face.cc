#include "server/model/hugging_face.h"

#include "nlohmann/json.hpp"
#include "server/model/parameter_spec.h"

namespace penstock::server::model {
namespace {

using Json = nlohmann::ordered_json;

Json Gpt2Config(const ModelConfig& c) {
  Json json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["activation_function"] = "gelu_new";
  json["n_layer"] = c.layers;
  json["n_embd"] = c.width;
  json["n_head"] = c.heads;
  json["n_inner"] = c.ffn_width;
  json["n_positions"] = c.context;
  json["n_ctx"] = c.context;
  json["layer_norm_epsilon"] = c.norm_eps;
  json["attn_pdrop"] = c.dropout;
  json["embd_pdrop"] = c.dropout;
  json["resid_pdrop"] = c.dropout;
  json["scale_attn_weights"] = true;
  json["scale_attn_by_inverse_layer_idx"] = false;
  json["reorder_and_upcast_attn"] = false;
  json["add_cross_attention"] = false;
  return json;
}

Json RopeScalingOf(const RopeScaling& scaling) {
  Json json;
  switch (scaling.kind) {
    case RopeScalingKind::kNone:
      json["rope_type"] = "default";
      break;
    case RopeScalingKind::kLinear:
      json["rope_type"] = "linear";
      json["factor"] = scaling.factor;
      break;
    case RopeScalingKind::kLlama3:
      json["rope_type"] = "llama3";
      json["factor"] = scaling.factor;
      json["low_freq_factor"] = scaling.low_freq_factor;
      json["high_freq_factor"] = scaling.high_freq_factor;
      json["original_max_position_embeddings"] = scaling.original_context;
      break;
  }
  return json;
}

Json LlamaConfig(const ModelConfig& c) {
  Json json;
  json["architectures"] = {"LlamaForCausalLM"};
  json["model_type"] = "llama";
  json["hidden_act"] = "silu";
  json["num_hidden_layers"] = c.layers;
  json["hidden_size"] = c.width;
  json["num_attention_heads"] = c.heads;
  json["num_key_value_heads"] = c.kv_heads;
  json["head_dim"] = c.head_dim;
  json["intermediate_size"] = c.ffn_width;
  json["max_position_embeddings"] = c.context;
  json["rms_norm_eps"] = c.norm_eps;
  json["attention_bias"] = false;
  json["attention_dropout"] = c.dropout;
  json["mlp_bias"] = false;
  json["pretraining_tp"] = 1;
  json["rope_theta"] = c.rope_theta;
  if (c.rope_scaling.kind == RopeScalingKind::kNone) {
    json["rope_scaling"] = nullptr;
  } else {
    json["rope_scaling"] = RopeScalingOf(c.rope_scaling);
  }
  json["rope_parameters"] = RopeScalingOf(c.rope_scaling);
  json["rope_parameters"]["rope_theta"] = c.rope_theta;
  return json;
}

}  // namespace

std::string HuggingFaceConfig(const ModelConfig& config) {
  Json json =
      config.family == Family::kGpt2 ? Gpt2Config(config) : LlamaConfig(config);
  json["vocab_size"] = config.vocab;
  json["initializer_range"] = config.init_std;
  json["tie_word_embeddings"] = config.tied;
  // Byte and foreign vocabularies have no special tokens of ours.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  json["pad_token_id"] = nullptr;
  json["torch_dtype"] = "float32";  // transformers 4
  json["dtype"] = "float32";        // transformers 5
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

std::string NamePrefix(const ModelConfig& config) {
  return config.family == Family::kGpt2 ? "transformer." : "model.";
}

std::string TokenEmbeddingName(const ModelConfig& config) {
  return EmbeddingParameters(config).front().members.front().name;
}

}  // namespace penstock::server::model
