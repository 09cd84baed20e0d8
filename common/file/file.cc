#include "common/file/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"

namespace penstock::common::file {
namespace {

constexpr mode_t kMode = 0666;
constexpr size_t kBlockBytes = 1 << 16;

absl::Status Errno(absl::string_view path, absl::string_view what) {
  return status::FileError(errno, absl::StrCat(path, ": ", what));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

FileIdentity IdentityOf(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .bytes = info.st_size,
          .modified_ns =
              info.st_mtim.tv_sec * int64_t{1000000000} + info.st_mtim.tv_nsec};
}

}  // namespace

absl::StatusOr<File> File::Open(const std::string& path, int flags) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  const absl::string_view refused =
      reads ? "cannot be read" : "cannot be written";
  Fd fd(open(path.c_str(), flags | O_CLOEXEC, kMode));
  if (!fd.open()) return Errno(path, refused);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Errno(path, refused);
  if (reads && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, S_ISDIR(info.st_mode)
                  ? ": is a folder, not a file"
                  : ": is a pipe or a device; only regular files are read"));
  }
  File file(path, std::move(fd));
  file.identity_ = IdentityOf(info);
  return file;
}

absl::StatusOr<File> File::OpenForRead(const std::string& path) {
  // Not blocking: a pipe without a writer would never open.
  return Open(path, O_RDONLY | O_NONBLOCK);
}

absl::StatusOr<File> File::Create(const std::string& path) {
  return Open(path, O_WRONLY | O_CREAT | O_TRUNC);
}

absl::StatusOr<File> File::OpenForAppend(const std::string& path) {
  return Open(path, O_WRONLY | O_CREAT | O_APPEND);
}

absl::StatusOr<FileIdentity> File::CurrentIdentity() const {
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) return Errno(path_, "cannot be read");
  return IdentityOf(info);
}

absl::StatusOr<size_t> File::ReadUpTo(int64_t offset,
                                      absl::Span<std::byte> out) const {
  size_t read = 0;
  while (read < out.size()) {
    const ssize_t got =
        pread(fd_.get(), out.data() + read, out.size() - read, offset + read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Errno(path_,
                   absl::StrCat("cannot be read at byte ", offset + read));
    }
    if (got == 0) break;
    read += static_cast<size_t>(got);
  }
  return read;
}

absl::Status File::ReadAt(int64_t offset, absl::Span<std::byte> out) const {
  ASSIGN_OR_RETURN(const size_t read, ReadUpTo(offset, out));
  if (read == out.size()) return absl::OkStatus();
  return status::WithReason(absl::DataLossError(absl::StrCat(
                                path_, ": ends at byte ", offset + read)),
                            common::status::kReasonInputNotVisible);
}

absl::Status File::Write(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Errno(path_, "cannot be written");
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status File::Write(absl::string_view bytes) {
  return Write(absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()));
}

absl::Status File::Truncate(int64_t bytes) {
  if (ftruncate(fd_.get(), bytes) == 0) return absl::OkStatus();
  return Errno(path_, absl::StrCat("cannot be cut to ", bytes, " bytes"));
}

absl::Status File::Close() {
  if (close(fd_.Release()) == 0) return absl::OkStatus();
  return Errno(path_, "cannot be closed");
}

absl::Status File::SyncAndClose() {
  absl::Status status;
  if (fsync(fd_.get()) != 0) status = Errno(path_, "cannot be synced");
  status.Update(Close());
  return status;
}

absl::Status SyncFolder(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open()) return Errno(folder, "cannot be opened");
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return Errno(folder, "cannot be synced");
  }
  return absl::OkStatus();
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return Errno(from, absl::StrCat("cannot be renamed to ", to));
  }
  return SyncFolder(FolderOf(to));
}

absl::Status ReplaceFile(const ReplaceFileArgs& args) {
  const std::string temporary = args.path + args.temporary_suffix;
  ASSIGN_OR_RETURN(File file, File::Create(temporary));
  absl::Status status = file.Write(args.contents);
  if (status.ok()) status = file.SyncAndClose();
  if (status.ok()) status = RenameDurably(temporary, args.path);
  // What it holds of a full disk is wanted for better things.
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit) {
  ASSIGN_OR_RETURN(const File file, File::OpenForRead(path));
  // To the end, whatever its size was: files of /proc have none.
  std::string bytes;
  while (static_cast<int64_t>(bytes.size()) <= limit) {
    const size_t before = bytes.size();
    bytes.resize(before + kBlockBytes);
    ASSIGN_OR_RETURN(
        const size_t read,
        file.ReadUpTo(before, absl::MakeSpan(reinterpret_cast<std::byte*>(
                                                 bytes.data() + before),
                                             kBlockBytes)));
    bytes.resize(before + read);
    if (read < kBlockBytes) break;
  }
  if (static_cast<int64_t>(bytes.size()) <= limit) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has more than ", limit, " bytes, which is the limit"));
}

}  // namespace penstock::common::file
