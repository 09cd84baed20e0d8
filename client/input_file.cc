#include "client/input_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/file/file.h"

namespace penstock::client {

absl::StatusOr<std::string> ReadInputFile(absl::string_view what,
                                          const std::string& path) {
  absl::StatusOr<std::string> bytes =
      common::file::ReadFile(path, kMaxInputFileBytes);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", bytes.status().message()));
}

}  // namespace penstock::client
