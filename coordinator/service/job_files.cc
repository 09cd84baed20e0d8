#include "coordinator/service/job_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::service {
namespace {

using common::status::FileError;

absl::Status WriteAll(int fd, const std::string& contents,
                      const std::string& path) {
  size_t written = 0;
  while (written < contents.size()) {
    const ssize_t n =
        write(fd, contents.data() + written, contents.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, absl::StrCat("writing ", path));
    written += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Open(const std::string& path, int flags) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (fd < 0) return FileError(errno, absl::StrCat("opening ", path));
  return fd;
}

absl::Status Close(int fd, const std::string& path) {
  if (close(fd) == 0) return absl::OkStatus();
  return FileError(errno, absl::StrCat("closing ", path));
}

// All of `contents` or nothing: the lines before stay whole.
absl::Status Append(const std::string& path, const std::string& contents) {
  ASSIGN_OR_RETURN(const int fd, Open(path, O_APPEND));
  const off_t size = lseek(fd, 0, SEEK_END);
  absl::Status status = WriteAll(fd, contents, path);
  if (!status.ok() && size >= 0 && ftruncate(fd, size) != 0) {
    status = common::status::Annotate(
        status, "the last line is torn and could not be taken back");
  }
  status.Update(Close(fd, path));
  return status;
}

absl::Status Replace(const std::string& path, const std::string& contents) {
  const std::string temporary = path + ".tmp";
  ASSIGN_OR_RETURN(const int fd, Open(temporary, O_TRUNC));
  absl::Status status = WriteAll(fd, contents, temporary);
  status.Update(Close(fd, temporary));
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError(errno, absl::StrCat("renaming to ", path));
  }
  // What it holds of a full disk is wanted for better things.
  if (!status.ok()) unlink(temporary.c_str());
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
  return Replace(path, write.contents);
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
