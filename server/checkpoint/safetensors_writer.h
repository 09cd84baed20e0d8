// Writes one safetensors file of f32 tensors, tensor by tensor.
//
// The file has its final name only when it is complete and durable: it is
// written under `path` + `temporary_suffix`, synced, then renamed.
#ifndef PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_WRITER_H_
#define PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/file/file.h"

namespace penstock::server::checkpoint {

// Name and shape of one f32 tensor to come.
struct WrittenTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// Length and JSON, as they stand at the start of the file: padded with spaces
// so that data begin at a multiple of 8; metadata {"format": "pt"}, without
// which transformers refuses the file. REQUIRES: no name twice.
std::string FormatSafetensorsHeader(absl::Span<const WrittenTensor> tensors);

// Thread-compatible.
class SafetensorsWriter {
 public:
  struct Options {
    std::string path;
    std::string temporary_suffix;  // ".tmp-TERM-EPOCH-INCARNATION"
    std::vector<WrittenTensor> tensors;
  };
  // Creates the temporary file and writes its header. An old temporary file of
  // the same name is overwritten. Errors of the file system carry the path.
  static absl::StatusOr<SafetensorsWriter> Create(const Options& options);

  SafetensorsWriter(SafetensorsWriter&&) = default;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = default;

  // The next tensor's values, row-major; tensors come in Options' order.
  // Internal when name or size is not the next one's.
  absl::Status Append(absl::string_view name, absl::Span<const float> values);

  // Syncs and renames. Internal when a tensor has not been appended. Without
  // Close() the temporary file is left for the caller to remove.
  absl::Status Close();

 private:
  SafetensorsWriter(const Options& options, common::file::File file)
      : options_(options), file_(std::move(file)) {}

  Options options_;
  common::file::File file_;
  size_t next_ = 0;
};

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_WRITER_H_
