#include "server/checkpoint/model_index.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/text/quote.h"
#include "nlohmann/json.hpp"

namespace penstock::server::checkpoint {
namespace {

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shard index: ", what));
}

bool IsPlainName(absl::string_view name) {
  return absl::EndsWith(name, ".safetensors") && name.front() != '.' &&
         name.size() <= 255 && !absl::StrContains(name, '/') &&
         !absl::StrContains(name, '\0');
}

}  // namespace

absl::StatusOr<ModelIndex> ParseModelIndex(absl::string_view text) {
  // Depth is no danger: nothing but three levels is ever looked at, and the
  // parser and the destructor of this library do not recurse.
  const nlohmann::json json = nlohmann::json::parse(
      text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Invalid("not JSON");
  if (!json.is_object() || !json.contains("weight_map") ||
      !json["weight_map"].is_object() || json["weight_map"].empty()) {
    return Invalid("needs a weight_map of tensors to files");
  }
  ModelIndex index;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    const std::string* const name =
        shard.get_ptr<const nlohmann::json::string_t*>();
    if (name == nullptr || name->empty() || !IsPlainName(*name)) {
      return Invalid(absl::StrCat(
          "tensor ", common::text::Quoted(tensor),
          " must map to the name of a .safetensors file in the folder"));
    }
    index.shards[tensor] = *name;
  }
  return index;
}

}  // namespace penstock::server::checkpoint
