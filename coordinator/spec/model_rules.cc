#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/hf_config.h"
#include "coordinator/spec/hf_rope.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/rules.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {
namespace {

// One model being finished; lives for one call.
class ModelRules {
 public:
  ModelRules(Draft& draft, std::vector<Violation>& violations,
             std::vector<std::string>& notes)
      : draft_(draft),
        model_(draft.spec.model),
        violations_(violations),
        notes_(notes) {}

  void FromKeys() {
    for (const char* key : {"model.family", "model.layers", "model.width",
                            "model.heads", "model.context"}) {
      if (!draft_.Given(key) && Sound(key)) {
        Refuse(key, "is required (or model.from)");
      }
    }
    model_.tied_embeddings =
        draft_.tied_embeddings.value_or(model_.family == ModelFamily::kGpt2);
    model_.kv_heads = draft_.kv_heads.value_or(model_.heads);
    model_.ffn_width =
        draft_.ffn_width.value_or(DefaultFfnWidth(model_.family, model_.width));
    model_.vocab = draft_.vocab.value_or(0);
    if (Sound("model.heads") && Sound("model.width")) ResolveHeads();
    if (!Sound("model.family")) return;
    if (model_.family == ModelFamily::kGpt2) {
      CheckGpt2();
    } else {
      CheckLlama();
    }
  }

  void FromFolder(const ConfigReader& read_config) {
    for (const absl::string_view key : AllKeyPaths()) {
      if (absl::StartsWith(key, "model.") && key != "model.from" &&
          key != "model.dropout" && draft_.Given(key)) {
        Refuse(key,
               "only dropout may stand beside model.from; the rest is what "
               "its config.json says");
      }
    }
    if (!read_config) {
      Refuse("model.from", "no model folder can be read here");
      return;
    }
    const absl::StatusOr<std::string> bytes = read_config(model_.from);
    if (!bytes.ok()) {
      Refuse("model.from", absl::StrCat("config.json cannot be read: ",
                                        bytes.status().message()));
      return;
    }
    HfConfig config = ReadHfConfig(*bytes);
    for (const std::string& error : config.errors) {
      Refuse("model.from", absl::StrCat("config.json: ", error));
    }
    if (!config.ignored_dropout.empty() && !draft_.Given("model.dropout")) {
      notes_.push_back(
          absl::StrCat("dropout of config.json (",
                       absl::StrJoin(config.ignored_dropout, ", "),
                       ") is ignored; model.dropout is the key, and is 0"));
    }
    config.model.from = model_.from;
    config.model.dropout = model_.dropout;
    model_ = config.model;
  }

 private:
  bool Sound(absl::string_view key) const { return IsSound(key, violations_); }

  void Refuse(absl::string_view key, std::string message) {
    violations_.push_back({std::string(key), std::move(message)});
  }

  void ResolveHeads() {
    model_.head_dim = draft_.head_dim.value_or(model_.width / model_.heads);
    if (!draft_.head_dim.has_value() && Sound("model.head_dim") &&
        model_.width % model_.heads != 0) {
      Refuse("model.heads",
             absl::StrCat(model_.heads, " heads do not divide the width, ",
                          model_.width));
    }
    if (draft_.kv_heads.has_value() && model_.heads % model_.kv_heads != 0) {
      Refuse("model.kv_heads",
             absl::StrCat(model_.kv_heads,
                          " key/value heads do not divide the heads, ",
                          model_.heads));
    }
  }

  void CheckGpt2() {
    for (const char* key : {"model.rope_theta", "model.rope_scaling"}) {
      if (draft_.Given(key)) {
        Refuse(key,
               "gpt2 has learned positions; leave it out or write "
               "family: llama");
      }
    }
    if (draft_.kv_heads.has_value() && Sound("model.kv_heads") &&
        Sound("model.heads") && model_.kv_heads != model_.heads) {
      Refuse("model.kv_heads",
             absl::StrCat("gpt2 has as many key/value heads as heads, ",
                          model_.heads, "; leave it out"));
    }
    if (draft_.head_dim.has_value()) {
      Refuse("model.head_dim", "gpt2's is always width / heads; leave it out");
    }
  }

  void CheckLlama() {
    if (Sound("model.heads") && Sound("model.width") &&
        Sound("model.head_dim") && model_.head_dim % 2 != 0) {
      Refuse(draft_.head_dim.has_value() ? "model.head_dim" : "model.heads",
             absl::StrCat("a head has ", model_.head_dim,
                          " elements, must be even for rotary positions"));
    }
    if (Sound("model.rope_scaling")) ResolveRopeScaling();
  }

  // Which keys of rope_scaling its rope_type takes: all of them or none.
  void ResolveRopeScaling() {
    RopeScaling& scaling = model_.rope_scaling;
    if (draft_.rope_type.has_value()) {
      if (draft_.Given("model.rope_scaling.rope_type")) {
        Refuse("model.rope_scaling.type",
               "rope_type is given too; keep one of the two");
        return;
      }
      scaling.kind = *draft_.rope_type;
    }
    const bool scales = scaling.kind != RopeScalingKind::kNone;
    const bool llama3 = scaling.kind == RopeScalingKind::kLlama3;
    Take("factor", scales, draft_.rope_factor, scaling.factor);
    Take("low_freq_factor", llama3, draft_.rope_low, scaling.low_freq_factor);
    Take("high_freq_factor", llama3, draft_.rope_high,
         scaling.high_freq_factor);
    Take("original_max_position_embeddings", llama3,
         draft_.rope_original_context, scaling.original_context);
    if (!Sound("model.rope_scaling")) return;
    const std::string wrong = CheckRopeScaling(scaling);
    if (!wrong.empty()) Refuse("model.rope_scaling", wrong);
  }

  template <typename T>
  void Take(absl::string_view key, bool wanted, const std::optional<T>& given,
            T& field) {
    const std::string path = absl::StrCat("model.rope_scaling.", key);
    const absl::string_view type =
        NameOf(kRopeScalingKindNames, model_.rope_scaling.kind);
    if (wanted && !given.has_value()) {
      Refuse(path, absl::StrCat("is required by rope_type: ", type));
    } else if (!wanted && given.has_value()) {
      Refuse(path, absl::StrCat("has no effect with rope_type: ", type,
                                "; leave it out"));
    } else if (given.has_value()) {
      field = *given;
    }
  }

  Draft& draft_;
  ModelSpec& model_;
  std::vector<Violation>& violations_;
  std::vector<std::string>& notes_;
};

}  // namespace

void FinishModel(const ConfigReader& read_config, Draft& draft,
                 std::vector<Violation>& violations,
                 std::vector<std::string>& notes) {
  ModelRules rules(draft, violations, notes);
  if (!IsSound("model", violations) && !draft.Given("model")) return;
  if (!draft.Given("model.from")) {
    if (IsSound("model.from", violations)) rules.FromKeys();
    return;
  }
  rules.FromFolder(read_config);
  if (IsSound("model.from", violations) &&
      !draft.spec.data.sequence_length.has_value()) {
    notes.push_back(absl::StrCat(
        "data.sequence_length is ", DefaultSequenceLength(draft.spec.model),
        " unless the data decide (the model's longest is ",
        draft.spec.model.context, ")"));
  }
}

}  // namespace penstock::coordinator::spec
