#include "server/checkpoint/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"

namespace penstock::server::checkpoint {
namespace {

absl::Status Errno(absl::string_view verb, const std::string& path) {
  return common::status::FileError(errno, absl::StrCat(verb, " ", path));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status SyncFolder(const std::string& folder) {
  const int descriptor =
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Errno("open folder", folder);
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  errno = error;
  return result == 0 ? absl::OkStatus() : Errno("sync folder", folder);
}

}  // namespace

File::File(std::string path, int descriptor, int64_t bytes)
    : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0 && close(descriptor_) != 0) {
    LOG(WARNING) << "close " << path_ << ": " << strerror(errno);
  }
}

absl::StatusOr<File> File::OpenForRead(const std::string& path) {
  // O_NONBLOCK: a FIFO in the folder must not block us before fstat tells.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return Errno("open", path);
  File file(path, descriptor, 0);
  struct stat info;
  if (fstat(descriptor, &info) != 0) return Errno("stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("open ", path, ": not a regular file"));
  }
  file.bytes_ = info.st_size;
  return file;
}

absl::StatusOr<File> File::Create(const std::string& path) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return Errno("create", path);
  return File(path, descriptor, 0);
}

absl::Status File::ReadAt(int64_t offset, absl::Span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Errno("read", path_);
    if (count == 0) {
      return common::status::WithReason(
          absl::DataLossError(
              absl::StrCat("read ", path_, ": ends at byte ", offset)),
          "INPUT_NOT_VISIBLE");
    }
    bytes.remove_prefix(count);
    offset += count;
  }
  return absl::OkStatus();
}

absl::Status File::Write(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Errno("write", path_);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status File::SyncAndClose() {
  const int descriptor = std::exchange(descriptor_, -1);
  absl::Status status;
  if (fsync(descriptor) != 0) status = Errno("sync", path_);
  if (close(descriptor) != 0 && status.ok()) status = Errno("close", path_);
  return status;
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return Errno(absl::StrCat("rename ", from, " to"), to);
  }
  return SyncFolder(FolderOf(to));
}

absl::Status WriteTextFile(const WriteTextArgs& args) {
  const std::string temporary = args.path + args.temporary_suffix;
  ASSIGN_OR_RETURN(File file, File::Create(temporary));
  absl::Status status = file.Write(absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(args.text.data()), args.text.size()));
  if (status.ok()) status = file.SyncAndClose();
  if (status.ok()) return RenameDurably(temporary, args.path);
  unlink(temporary.c_str());
  return status;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         int64_t limit) {
  ASSIGN_OR_RETURN(const File file, File::OpenForRead(path));
  if (file.bytes() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("read ", path, ": ", file.bytes(),
                     " bytes, more than the limit of ", limit));
  }
  std::string text(file.bytes(), '\0');
  RETURN_IF_ERROR(file.ReadAt(
      0,
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())));
  return text;
}

}  // namespace penstock::server::checkpoint
