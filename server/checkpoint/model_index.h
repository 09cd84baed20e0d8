// model.safetensors.index.json, read: which shard holds which tensor; and the
// names that Hugging Face gives to the files of a model folder. The coordinator
// writes the index and names the shards (coordinator/dispatch/summary.h).
#ifndef PENSTOCK_SERVER_CHECKPOINT_MODEL_INDEX_H_
#define PENSTOCK_SERVER_CHECKPOINT_MODEL_INDEX_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::server::checkpoint {

inline constexpr absl::string_view kModelFile = "model.safetensors";
inline constexpr absl::string_view kModelIndexFile =
    "model.safetensors.index.json";
inline constexpr absl::string_view kConfigFile = "config.json";

struct ModelIndex {
  std::map<std::string, std::string> shards;  // Tensor -> file in the folder.
};

// A parser of outside bytes. InvalidArgument unless it is {"weight_map":
// {tensor: file}}, not empty, and every file a plain name ending in
// ".safetensors" (no path). Other keys are ignored.
absl::StatusOr<ModelIndex> ParseModelIndex(absl::string_view text);

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_MODEL_INDEX_H_
