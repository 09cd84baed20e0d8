#include "coordinator/service/job_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::service {
namespace {

absl::Status FileError(absl::string_view what, const std::string& path,
                       int error) {
  const std::string message =
      absl::StrCat(what, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOENT:
      return absl::NotFoundError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::Status WriteAll(int fd, const std::string& contents,
                      const std::string& path) {
  size_t written = 0;
  while (written < contents.size()) {
    const ssize_t n =
        write(fd, contents.data() + written, contents.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("writing", path, errno);
    written += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteNow(const dispatch::WriteJobFile& write) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(write.directory) / write.name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return FileError("making", path.parent_path(), error.value());

  const bool append = write.mode == dispatch::WriteJobFile::Mode::kAppend;
  const std::string target = append ? path : fs::path(path.string() + ".tmp");
  const int fd = open(
      target.c_str(),
      O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0644);
  if (fd < 0) return FileError("opening", target, errno);
  absl::Status status = WriteAll(fd, write.contents, target);
  if (close(fd) != 0 && status.ok()) {
    status = FileError("closing", target, errno);
  }
  RETURN_IF_ERROR(status);
  if (!append && rename(target.c_str(), path.c_str()) != 0) {
    return FileError("renaming to", path, errno);
  }
  return absl::OkStatus();
}

JobFiles::JobFiles(
    std::function<void(const dispatch::WriteJobFile&, const absl::Status&)>
        on_failure)
    : on_failure_(std::move(on_failure)) {}

void JobFiles::Post(dispatch::WriteJobFile write) {
  queue_.Post([this, write = std::move(write)] {
    if (const absl::Status status = WriteNow(write); !status.ok()) {
      on_failure_(write, status);
    }
  });
}

}  // namespace penstock::coordinator::service
