// Writes a rank's shard of the trained model as part of a Hugging Face folder.
#ifndef PENSTOCK_SERVER_SERVICE_MODEL_FOLDER_WRITER_H_
#define PENSTOCK_SERVER_SERVICE_MODEL_FOLDER_WRITER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/executor/model_writer.h"
#include "server/model/model_config.h"

namespace penstock::server::service {

// Thread-compatible: confined to the engine thread.
class ModelFolderWriter final : public executor::ModelWriter {
 public:
  ModelFolderWriter(const model::ModelConfig& config, int64_t epoch)
      : config_(config), epoch_(epoch) {}

  // Into a folder that is there; it is the coordinator's (ProbeOutput). The
  // rank that owns the token embedding also writes config.json. Errors of
  // the file system are common/status/file_error.h's, with the path; of the
  // files that they end nothing is left.
  absl::StatusOr<std::vector<std::string>> Write(
      const Request& request) override;

 private:
  const model::ModelConfig config_;
  const int64_t epoch_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_MODEL_FOLDER_WRITER_H_
