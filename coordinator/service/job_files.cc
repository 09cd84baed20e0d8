#include "coordinator/service/job_files.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file/file.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::service {
namespace {

using common::status::FileError;

// All of `contents` or nothing: the lines before stay whole.
absl::Status Append(const std::string& path, const std::string& contents) {
  ASSIGN_OR_RETURN(common::file::File file,
                   common::file::File::OpenForAppend(path));
  absl::Status status = file.Write(contents);
  if (!status.ok() && !file.Truncate(file.bytes()).ok()) {
    status = common::status::Annotate(
        status, "the last line is torn and could not be taken back");
  }
  status.Update(file.Close());
  return status;
}

}  // namespace

absl::Status WriteNow(const dispatch::WriteJobFile& write,
                      MissingFolder missing) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(write.directory) / write.name;
  std::error_code error;
  if (missing == MissingFolder::kFail &&
      !fs::is_directory(write.directory, error)) {
    return FileError(ENOENT,
                     absl::StrCat("writing ", path.string(), ": the folder ",
                                  write.directory, " was removed or renamed"));
  }
  fs::create_directories(path.parent_path(), error);
  if (error) {
    return FileError(error.value(),
                     absl::StrCat("making ", path.parent_path().string()));
  }

  if (write.mode == dispatch::WriteJobFile::Mode::kAppend) {
    return Append(path, write.contents);
  }
  return common::file::ReplaceFile(
      {.path = path.string(), .contents = write.contents});
}

JobFiles::JobFiles(
    std::function<void(const dispatch::WriteJobFile&, const absl::Status&)>
        on_failure)
    : on_failure_(std::move(on_failure)) {}

void JobFiles::Post(dispatch::WriteJobFile write) {
  queue_.Post([this, write = std::move(write)] {
    const bool made = made_.count(write.directory) > 0;
    const absl::Status status =
        WriteNow(write, made ? MissingFolder::kFail : MissingFolder::kMake);
    if (status.ok()) {
      made_.insert(write.directory);
    } else {
      on_failure_(write, status);
    }
  });
}

}  // namespace penstock::coordinator::service
