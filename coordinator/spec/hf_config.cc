#include "coordinator/spec/hf_config.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/hf_rope.h"
#include "coordinator/spec/json_fields.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {
namespace {

using Json = nlohmann::json;

// A key that is honoured: a whole number, 1 .. max, of the model.
struct WholeKey {
  const char* key;
  int64_t max;
  int64_t ModelSpec::*field;
  bool required;
};

// A key that must be absent, null or one of the JSON values in `accepted`.
struct FixedKey {
  const char* key;
  const char* accepted;  // a JSON list
  const char* why;
};

constexpr WholeKey kGpt2Wholes[] = {
    {"n_layer", kMaxLayers, &ModelSpec::layers, true},
    {"n_embd", kMaxWidth, &ModelSpec::width, true},
    {"n_head", kMaxWidth, &ModelSpec::heads, true},
    {"n_inner", kMaxFfnWidth, &ModelSpec::ffn_width, false},
    {"n_positions", kMaxContext, &ModelSpec::context, true},
    {"vocab_size", kMaxVocab, &ModelSpec::vocab, true},
};

constexpr WholeKey kLlamaWholes[] = {
    {"num_hidden_layers", kMaxLayers, &ModelSpec::layers, true},
    {"hidden_size", kMaxWidth, &ModelSpec::width, true},
    {"num_attention_heads", kMaxWidth, &ModelSpec::heads, true},
    {"num_key_value_heads", kMaxWidth, &ModelSpec::kv_heads, false},
    {"head_dim", kMaxWidth, &ModelSpec::head_dim, false},
    {"intermediate_size", kMaxFfnWidth, &ModelSpec::ffn_width, true},
    {"max_position_embeddings", kMaxContext, &ModelSpec::context, true},
    {"vocab_size", kMaxVocab, &ModelSpec::vocab, true},
};

// reorder_and_upcast_attn is not here: it changes where numbers are scaled and
// in which precision, not what is computed.
constexpr FixedKey kGpt2Fixed[] = {
    {"architectures", R"([["GPT2LMHeadModel"], ["GPT2Model"], []])",
     "only the language model is built"},
    {"activation_function", R"(["gelu_new"])", "GELU-tanh is built"},
    {"scale_attn_weights", "[true]", "attention is scaled by 1/sqrt(head_dim)"},
    {"scale_attn_by_inverse_layer_idx", "[false]",
     "scaling by the layer's number is not built"},
    {"add_cross_attention", "[false]", "cross-attention is not built"},
    {"rope_scaling", "[]", "gpt2 has learned positions"},
    {"rope_parameters", "[]", "gpt2 has learned positions"},
};

constexpr FixedKey kLlamaFixed[] = {
    {"architectures", R"([["LlamaForCausalLM"], ["LlamaModel"], []])",
     "only the language model is built"},
    {"hidden_act", R"(["silu"])", "SwiGLU is built"},
    {"attention_bias", "[false]", "biases in attention are not built"},
    {"mlp_bias", "[false]", "biases in the MLP are not built"},
    {"pretraining_tp", "[1]", "its sliced products round differently"},
};

// Of either family: keys of their relatives that change what is computed.
constexpr FixedKey kCommonFixed[] = {
    {"quantization_config", "[]", "quantized weights cannot be trained"},
    {"is_encoder_decoder", "[false]", "only decoders are built"},
    {"pruned_heads", "[{}, []]", "pruned heads are not built"},
    {"sliding_window", "[]", "attention over a window is not built"},
    {"use_sliding_window", "[false]", "attention over a window is not built"},
    {"layer_types", "[]", "layers of several types are not built"},
    {"attention_chunk_size", "[]", "chunked attention is not built"},
    {"no_rope_layers", "[[]]", "layers without positions are not built"},
    {"partial_rotary_factor", "[1, 1.0]", "positions rotate whole heads"},
    {"rotary_pct", "[1, 1.0]", "positions rotate whole heads"},
    {"rotary_dim", "[]", "positions rotate whole heads"},
    {"alibi", "[false]", "ALiBi is not built"},
    {"qk_norm", "[false]", "norms of queries and keys are not built"},
    {"use_qk_norm", "[false]", "norms of queries and keys are not built"},
    {"qk_layernorm", "[false]", "norms of queries and keys are not built"},
    {"attn_logit_softcapping", "[]", "capped logits are not built"},
    {"final_logit_softcapping", "[]", "capped logits are not built"},
    {"query_pre_attn_scalar", "[]", "another attention scale is not built"},
    {"attention_multiplier", "[1, 1.0]",
     "another attention scale is not built"},
    {"embedding_multiplier", "[1, 1.0]", "scaled embeddings are not built"},
    {"residual_multiplier", "[1, 1.0]", "scaled residuals are not built"},
    {"logits_scaling", "[1, 1.0]", "scaled logits are not built"},
    {"logit_scale", "[1, 1.0]", "scaled logits are not built"},
    {"scale_emb", "[1, 1.0]", "scaled embeddings are not built"},
    {"scale_depth", "[]", "scaled residuals are not built"},
    {"parallel_attn", "[false]", "parallel blocks are not built"},
    {"use_parallel_residual", "[false]", "parallel blocks are not built"},
    {"num_local_experts", "[0, 1]", "mixtures of experts are not built"},
    {"num_experts", "[0, 1]", "mixtures of experts are not built"},
    {"n_routed_experts", "[0]", "mixtures of experts are not built"},
};

void ReadWholes(const Json& json, const WholeKey* keys, size_t count,
                HfConfig& out) {
  for (size_t i = 0; i < count; ++i) {
    const WholeKey& key = keys[i];
    const std::optional<int64_t> value =
        WholeField(json, key.key, key.max, out.errors);
    if (value.has_value()) {
      out.model.*key.field = *value;
    } else if (key.required && IsUnset(json, key.key)) {
      out.errors.push_back(absl::StrCat(key.key, ": is required"));
    }
  }
}

void CheckFixed(const Json& json, const FixedKey* keys, size_t count,
                std::vector<std::string>& errors) {
  for (size_t i = 0; i < count; ++i) {
    const FixedKey& key = keys[i];
    if (IsUnset(json, key.key)) continue;
    // A constant of ours, so this parse cannot fail.
    const Json accepted = Json::parse(key.accepted);
    bool ok = false;
    for (const Json& value : accepted) ok = ok || value == json[key.key];
    if (ok) continue;
    errors.push_back(absl::StrCat(
        key.key, ": is ", ShowJson(json[key.key]), ", must be ",
        accepted.empty() ? "absent or null" : ShowJson(accepted[0]), "; ",
        key.why));
  }
}

template <size_t N>
void CheckFixed(const Json& json, const FixedKey (&keys)[N],
                std::vector<std::string>& errors) {
  CheckFixed(json, keys, N, errors);
}

void ReadNumbers(const Json& json, const char* eps_key, HfConfig& out) {
  ModelSpec& model = out.model;
  const auto positive = [&](const char* key, double& field) {
    const std::optional<double> value = NumberField(json, key, out.errors);
    if (!value.has_value()) return;
    if (*value > 0) {
      field = *value;
    } else {
      out.errors.push_back(absl::StrCat(key, ": is ", FormatNumber(*value),
                                        ", must be above 0"));
    }
  };
  positive(eps_key, model.norm_eps);
  positive("initializer_range", model.init_std);
  model.tied_embeddings = FlagField(json, "tie_word_embeddings", out.errors)
                              .value_or(model.family == ModelFamily::kGpt2);
}

void ReadGpt2(const Json& json, HfConfig& out) {
  ModelSpec& model = out.model;
  model.family = ModelFamily::kGpt2;
  ReadWholes(json, kGpt2Wholes, std::size(kGpt2Wholes), out);
  CheckFixed(json, kGpt2Fixed, out.errors);
  ReadNumbers(json, "layer_norm_epsilon", out);
  if (model.ffn_width == 0) {
    model.ffn_width = DefaultFfnWidth(model.family, model.width);
  }
  model.kv_heads = model.heads;
  if (model.heads > 0 && model.width > 0) {
    model.head_dim = model.width / model.heads;
    if (model.width % model.heads != 0) {
      out.errors.push_back(absl::StrCat("n_head: ", model.heads,
                                        " heads do not divide n_embd, ",
                                        model.width));
    }
  }
}

void ReadLlama(const Json& json, HfConfig& out) {
  ModelSpec& model = out.model;
  model.family = ModelFamily::kLlama;
  model.norm_eps = 1e-6;  // transformers' default where the key is absent
  ReadWholes(json, kLlamaWholes, std::size(kLlamaWholes), out);
  CheckFixed(json, kLlamaFixed, out.errors);
  ReadNumbers(json, "rms_norm_eps", out);
  ReadHfRope(json, model, out.errors);
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.heads == 0 || model.width == 0 || model.kv_heads == 0) return;
  if (model.heads % model.kv_heads != 0) {
    out.errors.push_back(absl::StrCat("num_key_value_heads: ", model.kv_heads,
                                      " do not divide num_attention_heads, ",
                                      model.heads));
  }
  if (model.head_dim == 0) {
    model.head_dim = model.width / model.heads;
    if (model.width % model.heads != 0) {
      out.errors.push_back(absl::StrCat("num_attention_heads: ", model.heads,
                                        " heads do not divide hidden_size, ",
                                        model.width,
                                        ", and there is no head_dim"));
    }
  }
  if (model.head_dim % 2 != 0) {
    out.errors.push_back(absl::StrCat("head_dim: is ", model.head_dim,
                                      ", must be even for rotary positions"));
  }
}

}  // namespace

HfConfig ReadHfConfig(absl::string_view bytes) {
  HfConfig out;
  const std::optional<Json> json = ParseJson(bytes, out.errors);
  if (!json.has_value()) return out;
  if (!json->is_object()) {
    out.errors.push_back("the file is no JSON object");
    return out;
  }
  const std::string type =
      IsUnset(*json, "model_type") ? "" : ShowJson((*json)["model_type"]);
  if (type == "\"gpt2\"") {
    ReadGpt2(*json, out);
  } else if (type == "\"llama\"") {
    ReadLlama(*json, out);
  } else {
    out.errors.push_back(absl::StrCat(
        "model_type: ", type.empty() ? "is missing" : absl::StrCat("is ", type),
        ", must be \"gpt2\" or \"llama\""));
    return out;
  }
  CheckFixed(*json, kCommonFixed, out.errors);
  return out;
}

}  // namespace penstock::coordinator::spec
