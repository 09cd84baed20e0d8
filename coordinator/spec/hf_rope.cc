#include "coordinator/spec/hf_rope.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/json_fields.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {
namespace {

using Json = nlohmann::json;

constexpr const char* kRopeKeys[] = {"rope_type",
                                     "type",
                                     "rope_theta",
                                     "factor",
                                     "low_freq_factor",
                                     "high_freq_factor",
                                     "partial_rotary_factor",
                                     "original_max_position_embeddings"};

bool IsRopeKey(const std::string& key) {
  for (const char* known : kRopeKeys) {
    if (key == known) return true;
  }
  return false;
}

bool IsInF32(const char* key, double value, std::vector<std::string>& errors) {
  if (FitsF32(value)) return true;
  errors.push_back(
      absl::StrCat(key, ": is ", FormatNumber(value), "; ", kNotInF32));
  return false;
}

void SetTheta(const Json& object, ModelSpec& model,
              std::vector<std::string>& errors) {
  const std::optional<double> theta = NumberField(object, "rope_theta", errors);
  if (!theta.has_value() || !IsInF32("rope_theta", *theta, errors)) return;
  if (*theta >= 1) {
    model.rope_theta = *theta;
  } else {
    errors.push_back(absl::StrCat("rope_theta: is ", FormatNumber(*theta),
                                  ", must be at least 1"));
  }
}

// A factor that the kind needs.
void Require(const Json& rope, const char* key, double& field,
             std::vector<std::string>& errors) {
  if (IsUnset(rope, key)) {
    errors.push_back(absl::StrCat(key, ": is required by this rope_type"));
    return;
  }
  const std::optional<double> value = NumberField(rope, key, errors);
  if (value.has_value() && IsInF32(key, *value, errors)) field = *value;
}

void ReadScaling(const Json& rope, RopeScaling& scaling,
                 std::vector<std::string>& errors) {
  const char* type_key = IsUnset(rope, "rope_type") ? "type" : "rope_type";
  const std::optional<RopeScalingKind> kind =
      IsUnset(rope, type_key) ? RopeScalingKind::kNone
      : rope[type_key].is_string()
          ? ValueOf(
                kRopeScalingKindNames,
                absl::string_view(rope[type_key].get_ref<const std::string&>()))
          : std::nullopt;
  if (!kind.has_value()) {
    errors.push_back(absl::StrCat("rope_type: is ", ShowJson(rope[type_key]),
                                  ", must be default, linear or llama3"));
    return;
  }
  scaling.kind = *kind;
  if (*kind == RopeScalingKind::kNone) return;
  const size_t before = errors.size();
  Require(rope, "factor", scaling.factor, errors);
  if (*kind == RopeScalingKind::kLlama3) {
    Require(rope, "low_freq_factor", scaling.low_freq_factor, errors);
    Require(rope, "high_freq_factor", scaling.high_freq_factor, errors);
    const char* original = "original_max_position_embeddings";
    if (IsUnset(rope, original)) {
      errors.push_back(
          absl::StrCat(original, ": is required by this rope_type"));
    }
    scaling.original_context = WholeField(rope, original, kMaxContext, errors)
                                   .value_or(scaling.original_context);
  }
  const std::string wrong = CheckRopeScaling(scaling);
  if (!wrong.empty() && errors.size() == before) errors.push_back(wrong);
}

// `name` is rope_scaling or rope_parameters, and is set.
void ReadForm(const Json& config, const char* name, ModelSpec& model,
              std::vector<std::string>& errors) {
  const Json& rope = config[name];
  if (!rope.is_object()) {
    errors.push_back(absl::StrCat(name, ": is ", ShowJson(rope),
                                  ", must be an object or null"));
    return;
  }
  std::vector<std::string> inner;
  for (const auto& item : rope.items()) {
    if (!item.value().is_null() && !IsRopeKey(item.key())) {
      inner.push_back(absl::StrCat(ShowJson(Json(item.key())),
                                   ": unknown, and every key here changes the "
                                   "positions"));
    }
  }
  const double outer_theta = model.rope_theta;
  SetTheta(rope, model, inner);
  if (!IsUnset(config, "rope_theta") && model.rope_theta != outer_theta) {
    inner.push_back(absl::StrCat(
        "rope_theta: is ", FormatNumber(model.rope_theta),
        ", but the outer rope_theta is ", FormatNumber(outer_theta)));
  }
  const double partial =
      NumberField(rope, "partial_rotary_factor", inner).value_or(1.0);
  if (partial != 1.0) {
    inner.push_back(
        "partial_rotary_factor: must be 1; positions rotate whole "
        "heads");
  }
  ReadScaling(rope, model.rope_scaling, inner);
  for (const std::string& error : inner) {
    errors.push_back(absl::StrCat(name, ".", error));
  }
}

}  // namespace

std::string CheckRopeScaling(const RopeScaling& scaling) {
  if (!(scaling.factor >= 1)) {
    return absl::StrCat("factor: is ", FormatNumber(scaling.factor),
                        ", must be at least 1");
  }
  if (scaling.kind != RopeScalingKind::kLlama3) return "";
  if (!(scaling.low_freq_factor > 0)) {
    return absl::StrCat("low_freq_factor: is ",
                        FormatNumber(scaling.low_freq_factor),
                        ", must be above 0");
  }
  if (!(scaling.high_freq_factor > scaling.low_freq_factor)) {
    return absl::StrCat("high_freq_factor: is ",
                        FormatNumber(scaling.high_freq_factor),
                        ", must be above low_freq_factor, ",
                        FormatNumber(scaling.low_freq_factor));
  }
  return "";
}

void ReadHfRope(const Json& config, ModelSpec& model,
                std::vector<std::string>& errors) {
  SetTheta(config, model, errors);
  // transformers 4 writes the one, 5 the other, and we write both.
  const ModelSpec outer = model;
  const size_t before = errors.size();
  if (!IsUnset(config, "rope_scaling")) {
    ReadForm(config, "rope_scaling", model, errors);
  }
  if (IsUnset(config, "rope_parameters")) return;
  const ModelSpec old_form = model;
  model = outer;
  ReadForm(config, "rope_parameters", model, errors);
  if (!IsUnset(config, "rope_scaling") && errors.size() == before &&
      (model.rope_scaling != old_form.rope_scaling ||
       model.rope_theta != old_form.rope_theta)) {
    errors.push_back("rope_scaling: differs from rope_parameters; keep one");
  }
}

}  // namespace penstock::coordinator::spec
