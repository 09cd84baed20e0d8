#include "server/service/model_folder_writer.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/file/file.h"
#include "common/status/status_macros.h"
#include "server/checkpoint/model_index.h"
#include "server/checkpoint/safetensors_writer.h"
#include "server/model/hugging_face.h"

namespace penstock::server::service {

absl::StatusOr<std::vector<std::string>> ModelFolderWriter::Write(
    const Request& request) {
  namespace fs = std::filesystem;
  const fs::path folder(request.end.model_directory());
  checkpoint::SafetensorsWriter::Options options;
  options.path = (folder / request.end.shard_file()).string();
  options.temporary_suffix = absl::StrCat(".tmp-", epoch_);
  std::vector<std::string> names;
  bool has_embedding = false;
  for (const model::ParameterSpec& spec : request.parameters.owned()) {
    std::vector<int64_t> shape;
    for (int i = 0; i < spec.shape.rank(); ++i) {
      shape.push_back(spec.shape.dim(i));
    }
    has_embedding |= spec.name == model::TokenEmbeddingName(config_);
    names.push_back(spec.name);
    options.tensors.push_back({.name = spec.name, .shape = std::move(shape)});
  }
  // A shard that was not finished must not keep a full disk full.
  absl::Cleanup remove_unfinished = [&options] {
    std::error_code ignored;
    fs::remove(options.path + options.temporary_suffix, ignored);
  };
  ASSIGN_OR_RETURN(checkpoint::SafetensorsWriter writer,
                   checkpoint::SafetensorsWriter::Create(options));
  RETURN_IF_ERROR(request.parameters.ReadWeights(
      request.stream,
      [&](const model::ParameterSpec& spec, absl::Span<const float> values) {
        RETURN_IF_ERROR(request.stopped());
        return writer.Append(spec.name, values);
      },
      absl::InfiniteFuture()));
  RETURN_IF_ERROR(writer.Close());
  std::move(remove_unfinished).Cancel();
  if (has_embedding) {
    RETURN_IF_ERROR(common::file::ReplaceFile(
        {.path = (folder / std::string(checkpoint::kConfigFile)).string(),
         .contents = model::HuggingFaceConfig(config_),
         .temporary_suffix = options.temporary_suffix}));
  }
  return names;
}

}  // namespace penstock::server::service
