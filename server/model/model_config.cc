#include "server/model/model_config.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::server::model {
namespace {

template <typename T>
absl::Status Invalid(absl::string_view field, T value, absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("model.", field, " is ", value, ": ", rule));
}

absl::Status CheckPositive(absl::string_view field, int64_t value) {
  // Keeps products of two sizes far from overflow.
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (value >= 1 && value <= kLargest) return absl::OkStatus();
  return Invalid(field, value,
                 absl::StrCat("must be between 1 and ", kLargest));
}

absl::Status ValidateRope(const ModelConfig& config) {
  if (config.head_dim % 2 != 0) {
    return Invalid("head_dim", config.head_dim,
                   "rotary embeddings need an even one");
  }
  if (!(config.rope_theta >= 1)) {
    return Invalid("rope_theta", config.rope_theta, "must be at least 1");
  }
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.kind == RopeScalingKind::kNone) return absl::OkStatus();
  if (!(scaling.factor >= 1)) {
    return Invalid("rope_scaling.factor", scaling.factor, "must be at least 1");
  }
  if (scaling.kind == RopeScalingKind::kLinear) return absl::OkStatus();
  if (!(scaling.low_freq_factor > 0)) {
    return Invalid("rope_scaling.low_freq_factor", scaling.low_freq_factor,
                   "must be positive");
  }
  if (!(scaling.high_freq_factor > scaling.low_freq_factor)) {
    return Invalid("rope_scaling.high_freq_factor", scaling.high_freq_factor,
                   "must be greater than low_freq_factor");
  }
  return CheckPositive("rope_scaling.original_max_position_embeddings",
                       scaling.original_context);
}

}  // namespace

absl::Status Validate(const ModelConfig& config) {
  RETURN_IF_ERROR(CheckPositive("layers", config.layers));
  if (config.layers > kMaxLayers) {
    return Invalid("layers", config.layers,
                   absl::StrCat("must be at most ", kMaxLayers));
  }
  RETURN_IF_ERROR(CheckPositive("width", config.width));
  RETURN_IF_ERROR(CheckPositive("heads", config.heads));
  RETURN_IF_ERROR(CheckPositive("kv_heads", config.kv_heads));
  RETURN_IF_ERROR(CheckPositive("head_dim", config.head_dim));
  RETURN_IF_ERROR(CheckPositive("ffn_width", config.ffn_width));
  RETURN_IF_ERROR(CheckPositive("context", config.context));
  RETURN_IF_ERROR(CheckPositive("vocab", config.vocab));
  if (config.heads % config.kv_heads != 0) {
    return Invalid("kv_heads", config.kv_heads,
                   absl::StrCat("must divide heads (", config.heads, ")"));
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    return Invalid("dropout", config.dropout, "must be in [0, 1)");
  }
  if (!(config.norm_eps > 0)) {
    return Invalid("norm_eps", config.norm_eps, "must be positive");
  }
  if (!(config.init_std >= 0)) {
    return Invalid("init_std", config.init_std, "must not be negative");
  }
  if (config.family == Family::kLlama) return ValidateRope(config);
  if (config.kv_heads != config.heads) {
    return Invalid("kv_heads", config.kv_heads, "gpt2 has one for each head");
  }
  if (config.heads * config.head_dim != config.width) {
    return Invalid("head_dim", config.head_dim,
                   absl::StrCat("gpt2 needs heads * head_dim = width (",
                                config.width, ")"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::model
