#include "coordinator/spec/hf_keys.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "coordinator/spec/json_fields.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::spec {
namespace {

using Json = nlohmann::json;

enum class Family { kGpt2, kLlama, kEither };

enum class Rule {
  kRequired,   // Honoured: a whole number from 1 to `max`, to `field`.
  kOptional,   // The same; where it is unset, `field` has a default.
  kSame,       // Another word for `field`: unset, or equal to it.
  kOneOf,      // Unset, or one of the JSON values in `accepted`.
  kElsewhere,  // Honoured by hf_config.cc or hf_rope.cc, of any type.
};

struct Row {
  Family family;
  // A name that ends in * stands for all that begin so.
  const char* key;
  Rule rule;
  int64_t ModelSpec::*field = nullptr;
  int64_t max = 0;
  const char* accepted = "[]";  // A JSON list.
  const char* why = "";
};

constexpr Row Whole(Family family, const char* key, Rule rule,
                    int64_t ModelSpec::*field, int64_t max) {
  return {
      .family = family, .key = key, .rule = rule, .field = field, .max = max};
}
constexpr Row Same(Family family, const char* key, int64_t ModelSpec::*field) {
  return {.family = family, .key = key, .rule = Rule::kSame, .field = field};
}
constexpr Row OneOf(Family family, const char* key, const char* accepted,
                    const char* why) {
  return {.family = family,
          .key = key,
          .rule = Rule::kOneOf,
          .accepted = accepted,
          .why = why};
}
constexpr Row Elsewhere(Family family, const char* key) {
  return {.family = family, .key = key, .rule = Rule::kElsewhere};
}

constexpr Family kGpt2 = Family::kGpt2;
constexpr Family kLlama = Family::kLlama;
constexpr Family kEither = Family::kEither;

// reorder_and_upcast_attn is not here: it changes where numbers are scaled and
// in which precision, not what is computed.
constexpr Row kKeys[] = {
    // Honoured.
    Whole(kGpt2, "n_layer", Rule::kRequired, &ModelSpec::layers, kMaxLayers),
    Whole(kGpt2, "n_embd", Rule::kRequired, &ModelSpec::width, kMaxWidth),
    Whole(kGpt2, "n_head", Rule::kRequired, &ModelSpec::heads, kMaxWidth),
    Whole(kGpt2, "n_inner", Rule::kOptional, &ModelSpec::ffn_width,
          kMaxFfnWidth),
    Whole(kGpt2, "n_positions", Rule::kRequired, &ModelSpec::context,
          kMaxContext),
    Whole(kLlama, "num_hidden_layers", Rule::kRequired, &ModelSpec::layers,
          kMaxLayers),
    Whole(kLlama, "hidden_size", Rule::kRequired, &ModelSpec::width, kMaxWidth),
    Whole(kLlama, "num_attention_heads", Rule::kRequired, &ModelSpec::heads,
          kMaxWidth),
    Whole(kLlama, "num_key_value_heads", Rule::kOptional, &ModelSpec::kv_heads,
          kMaxWidth),
    Whole(kLlama, "head_dim", Rule::kOptional, &ModelSpec::head_dim, kMaxWidth),
    Whole(kLlama, "intermediate_size", Rule::kRequired, &ModelSpec::ffn_width,
          kMaxFfnWidth),
    Whole(kLlama, "max_position_embeddings", Rule::kRequired,
          &ModelSpec::context, kMaxContext),
    Whole(kEither, "vocab_size", Rule::kRequired, &ModelSpec::vocab, kMaxVocab),
    Elsewhere(kEither, "model_type"),
    Elsewhere(kEither, "tie_word_embeddings"),
    Elsewhere(kEither, "initializer_range"),
    Elsewhere(kGpt2, "layer_norm_epsilon"),
    Elsewhere(kLlama, "rms_norm_eps"),
    Elsewhere(kLlama, "rope_theta"),
    Elsewhere(kLlama, "rope_scaling"),
    Elsewhere(kLlama, "rope_parameters"),

    // Other words for the same; n_ctx is that of old GPT-2 files.
    Same(kGpt2, "n_ctx", &ModelSpec::context),
    Same(kGpt2, "max_position_embeddings", &ModelSpec::context),
    Same(kGpt2, "num_hidden_layers", &ModelSpec::layers),
    Same(kGpt2, "hidden_size", &ModelSpec::width),
    Same(kGpt2, "num_attention_heads", &ModelSpec::heads),
    Same(kGpt2, "num_key_value_heads", &ModelSpec::kv_heads),
    Same(kGpt2, "n_head_kv", &ModelSpec::kv_heads),
    Same(kGpt2, "head_dim", &ModelSpec::head_dim),
    Same(kGpt2, "intermediate_size", &ModelSpec::ffn_width),

    // Of GPT-2.
    OneOf(kGpt2, "architectures", R"([["GPT2LMHeadModel"], ["GPT2Model"], []])",
          "only the language model is built"),
    OneOf(kGpt2, "activation_function", R"(["gelu_new"])",
          "GELU-tanh is built"),
    OneOf(kGpt2, "scale_attn_weights", "[true]",
          "attention is scaled by 1/sqrt(head_dim)"),
    OneOf(kGpt2, "scale_attn_by_inverse_layer_idx", "[false]",
          "scaling by the layer's number is not built"),
    OneOf(kGpt2, "add_cross_attention", "[false]",
          "cross-attention is not built"),
    OneOf(kGpt2, "rope_scaling", "[]", "gpt2 has learned positions"),
    OneOf(kGpt2, "rope_parameters", "[]", "gpt2 has learned positions"),
    OneOf(kGpt2, "position_embedding_type",
          R"(["absolute", "learned_absolute"])", "gpt2 has learned positions"),
    OneOf(kGpt2, "multi_query", "[false]", "shared keys are not built"),

    // Of Llama.
    OneOf(kLlama, "architectures",
          R"([["LlamaForCausalLM"], ["LlamaModel"], []])",
          "only the language model is built"),
    OneOf(kLlama, "hidden_act", R"(["silu"])", "SwiGLU is built"),
    OneOf(kLlama, "attention_bias", "[false]",
          "biases in attention are not built"),
    OneOf(kLlama, "qkv_bias", "[false]", "biases in attention are not built"),
    OneOf(kLlama, "mlp_bias", "[false]", "biases in the MLP are not built"),
    OneOf(kLlama, "use_bias", "[false]", "biases are not built"),
    OneOf(kLlama, "bias", "[false]", "biases are not built"),
    OneOf(kLlama, "pretraining_tp", "[1]",
          "its sliced products round differently"),
    OneOf(kLlama, "position_embedding_type", R"(["rope", "rotary"])",
          "llama has rotary positions"),

    // Of either's relatives.
    OneOf(kEither, "quantization_config", "[]",
          "quantized weights cannot be trained"),
    OneOf(kEither, "is_encoder_decoder", "[false]", "only decoders are built"),
    OneOf(kEither, "pruned_heads", "[{}, []]", "pruned heads are not built"),
    OneOf(kEither, "mup_*", "[]", "muP's multipliers are not built"),
    OneOf(kEither, "use_mup", "[false]", "muP's multipliers are not built"),
    OneOf(kEither, "clip_qkv", "[]",
          "clipped queries, keys and values are not built"),
    OneOf(kEither, "sliding_window", "[]",
          "attention over a window is not built"),
    OneOf(kEither, "use_sliding_window", "[false]",
          "attention over a window is not built"),
    OneOf(kEither, "window_size", "[]", "attention over a window is not built"),
    OneOf(kEither, "layer_types", "[]",
          "layers of several types are not built"),
    OneOf(kEither, "attention_chunk_size", "[]",
          "chunked attention is not built"),
    OneOf(kEither, "no_rope_layers", "[[]]",
          "layers without positions are not built"),
    OneOf(kEither, "partial_rotary_factor", "[1, 1.0]",
          "positions rotate whole heads"),
    OneOf(kEither, "rotary_pct", "[1, 1.0]", "positions rotate whole heads"),
    OneOf(kEither, "rotary_dim", "[]", "positions rotate whole heads"),
    OneOf(kEither, "rope_interleaved", "[false]",
          "positions rotate halves, not neighbours"),
    OneOf(kEither, "rope_ratio", "[1, 1.0]",
          "only rope_theta and rope_scaling are honoured"),
    OneOf(kEither, "alibi", "[false]", "ALiBi is not built"),
    OneOf(kEither, "qk_norm", "[false]",
          "norms of queries and keys are not built"),
    OneOf(kEither, "use_qk_norm", "[false]",
          "norms of queries and keys are not built"),
    OneOf(kEither, "qk_layernorm", "[false]",
          "norms of queries and keys are not built"),
    OneOf(kEither, "attn_logit_softcapping", "[]",
          "capped logits are not built"),
    OneOf(kEither, "final_logit_softcapping", "[]",
          "capped logits are not built"),
    OneOf(kEither, "query_pre_attn_scalar", "[]",
          "another attention scale is not built"),
    OneOf(kEither, "attention_multiplier", "[1, 1.0]",
          "another attention scale is not built"),
    OneOf(kEither, "embedding_multiplier", "[1, 1.0]",
          "scaled embeddings are not built"),
    OneOf(kEither, "embedding_scale", "[1, 1.0]",
          "scaled embeddings are not built"),
    OneOf(kEither, "scale_emb", "[1, 1.0]", "scaled embeddings are not built"),
    OneOf(kEither, "residual_multiplier", "[1, 1.0]",
          "scaled residuals are not built"),
    OneOf(kEither, "scale_depth", "[]", "scaled residuals are not built"),
    OneOf(kEither, "dim_model_base", "[]", "scaled logits are not built"),
    OneOf(kEither, "logits_scaling", "[1, 1.0]", "scaled logits are not built"),
    OneOf(kEither, "logit_scale", "[1, 1.0]", "scaled logits are not built"),
    OneOf(kEither, "lm_head_bias", "[false]",
          "a bias of the head is not built"),
    OneOf(kEither, "parallel_attn", "[false]", "parallel blocks are not built"),
    OneOf(kEither, "use_parallel_residual", "[false]",
          "parallel blocks are not built"),
    OneOf(kEither, "num_local_experts", "[0, 1]",
          "mixtures of experts are not built"),
    OneOf(kEither, "num_experts", "[0, 1]",
          "mixtures of experts are not built"),
    OneOf(kEither, "n_routed_experts", "[0]",
          "mixtures of experts are not built"),
    OneOf(kEither, "kv_lora_rank", "[]", "latent attention is not built"),
};

bool Applies(const Row& row, const ModelSpec& model) {
  return row.family == kEither ||
         (row.family == kGpt2) == (model.family == ModelFamily::kGpt2);
}

void CheckOneOf(const Json& json, const char* key, const Row& row,
                std::vector<std::string>& errors) {
  if (IsUnset(json, key)) return;
  // A constant of ours, so this parse cannot fail.
  const Json accepted = Json::parse(row.accepted);
  for (const Json& value : accepted) {
    if (value == json[key]) return;
  }
  errors.push_back(
      absl::StrCat(key, ": is ", ShowJson(json[key]), ", must be ",
                   accepted.empty() ? "absent or null" : ShowJson(accepted[0]),
                   "; ", row.why));
}

void CheckSame(const Json& json, const Row& row, const ModelSpec& model,
               std::vector<std::string>& errors) {
  const int64_t expected = model.*row.field;
  if (expected == 0 || IsUnset(json, row.key) || json[row.key] == expected) {
    return;
  }
  errors.push_back(absl::StrCat(row.key, ": is ", ShowJson(json[row.key]),
                                ", must be absent or ", expected,
                                ", as the model's other sizes have it"));
}

}  // namespace

void ReadHfWholes(const Json& json, ModelSpec& model,
                  std::vector<std::string>& errors) {
  for (const Row& row : kKeys) {
    if (!Applies(row, model)) continue;
    if (row.rule != Rule::kRequired && row.rule != Rule::kOptional) continue;
    const std::optional<int64_t> value =
        WholeField(json, row.key, row.max, errors);
    if (value.has_value()) {
      model.*row.field = *value;
    } else if (row.rule == Rule::kRequired && IsUnset(json, row.key)) {
      errors.push_back(absl::StrCat(row.key, ": is required"));
    }
  }
}

void CheckHfKeys(const Json& json, const ModelSpec& model,
                 std::vector<std::string>& errors) {
  for (const Row& row : kKeys) {
    if (!Applies(row, model)) continue;
    if (row.rule == Rule::kSame) CheckSame(json, row, model, errors);
    if (row.rule != Rule::kOneOf) continue;
    absl::string_view prefix = row.key;
    if (!absl::ConsumeSuffix(&prefix, "*")) {
      CheckOneOf(json, row.key, row, errors);
      continue;
    }
    for (const auto& [key, value] : json.items()) {
      if (!absl::StartsWith(key, prefix)) continue;
      CheckOneOf(json, key.c_str(), row, errors);
    }
  }
}

}  // namespace penstock::coordinator::spec
