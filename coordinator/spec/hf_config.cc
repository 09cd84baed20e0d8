#include "coordinator/spec/hf_config.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/hf_keys.h"
#include "coordinator/spec/hf_rope.h"
#include "coordinator/spec/json_fields.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {
namespace {

using Json = nlohmann::json;

void ReadNumbers(const Json& json, const char* eps_key, HfConfig& out) {
  ModelSpec& model = out.model;
  const auto positive = [&](const char* key, double& field) {
    const std::optional<double> value = NumberField(json, key, out.errors);
    if (!value.has_value()) return;
    if (!FitsF32(*value)) {
      out.errors.push_back(
          absl::StrCat(key, ": is ", FormatNumber(*value), "; ", kNotInF32));
    } else if (*value > 0) {
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
  ReadHfWholes(json, model, out.errors);
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
  ReadHfWholes(json, model, out.errors);
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

// Names of both families; none means anything else in the other.
constexpr const char* kDropoutKeys[] = {"attn_pdrop", "embd_pdrop",
                                        "resid_pdrop", "attention_dropout"};

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
  CheckHfKeys(*json, out.model, out.errors);
  for (const char* key : kDropoutKeys) {
    const auto found = json->find(key);
    if (found != json->end() && found->is_number() &&
        found->get<double>() != 0) {
      out.ignored_dropout.push_back(
          absl::StrCat(key, " ", FormatNumber(found->get<double>())));
    }
  }
  return out;
}

}  // namespace penstock::coordinator::spec
