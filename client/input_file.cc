#include "client/input_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/file/file.h"

namespace penstock::client {
namespace {

absl::StatusOr<std::string> Read(absl::string_view what,
                                 const std::string& path, int64_t limit) {
  absl::StatusOr<std::string> bytes = common::file::ReadFile(path, limit);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", bytes.status().message()));
}

}  // namespace

absl::StatusOr<std::string> ReadJobFile(const std::string& path) {
  return Read("job file", path, kMaxJobFileBytes);
}

absl::StatusOr<std::string> ReadScheduleFile(const std::string& path) {
  return Read("schedule file", path, kMaxScheduleFileBytes);
}

}  // namespace penstock::client
