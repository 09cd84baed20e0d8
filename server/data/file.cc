#include "server/data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {
namespace {

constexpr int64_t kScanBytes = int64_t{1} << 20;

absl::Status NotVisible(const std::string& path, absl::string_view why) {
  return common::status::WithReason(
      absl::InvalidArgumentError(absl::StrCat(path, ": ", why)),
      "INPUT_NOT_VISIBLE");
}

}  // namespace

absl::Status FileChanged(absl::string_view path, absl::string_view how) {
  return common::status::WithReason(
      absl::DataLossError(absl::StrCat(
          path, ": ", how, "; data files must stay as they are during a job")),
      "INPUT_NOT_VISIBLE");
}

absl::StatusOr<File::Opened> File::OpenPath(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return NotVisible(path,
                      absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return NotVisible(path,
                      absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) return NotVisible(path, "is no regular file");
  std::move(close_fd).Cancel();
  return Opened{
      .fd = fd,
      .identity = {.device = status.st_dev,
                   .inode = status.st_ino,
                   .bytes = status.st_size,
                   .modified_ns = status.st_mtim.tv_sec * int64_t{1000000000} +
                                  status.st_mtim.tv_nsec}};
}

absl::StatusOr<std::unique_ptr<File>> File::Open(absl::string_view path,
                                                 Descriptor descriptor,
                                                 PieceDone piece_done) {
  std::string owned(path);
  ASSIGN_OR_RETURN(const Opened opened, OpenPath(owned));
  return std::unique_ptr<File>(
      new File(std::move(owned), opened, descriptor, std::move(piece_done)));
}

File::File(std::string path, Opened opened, Descriptor descriptor,
           PieceDone piece_done)
    : path_(std::move(path)),
      identity_(opened.identity),
      fd_(descriptor == Descriptor::kKept ? opened.fd : -1),
      piece_done_(std::move(piece_done)) {
  if (fd_ < 0) close(opened.fd);
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

absl::Status File::Read(int64_t offset, absl::Span<std::byte> out) const {
  CHECK(offset >= 0 && static_cast<int64_t>(out.size()) <= bytes() - offset)
      << path_ << ": read of " << out.size() << " bytes at " << offset;
  if (fd_ >= 0) return ReadFrom(fd_, offset, out);
  ASSIGN_OR_RETURN(const Opened opened, OpenPath(path_));
  absl::Cleanup close_fd = [fd = opened.fd] { close(fd); };
  if (opened.identity != identity_) {
    return FileChanged(path_, "was changed or replaced since the job read it");
  }
  return ReadFrom(opened.fd, offset, out);
}

absl::Status File::ReadFrom(int fd, int64_t offset,
                            absl::Span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(fd, out.data(), out.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return common::status::FileError(
          errno, absl::StrCat(path_, ": read at byte ", offset, " failed"));
    }
    if (got == 0) {
      return FileChanged(path_, absl::StrCat("ends at byte ", offset,
                                             " but had ", bytes(), " bytes"));
    }
    out.remove_prefix(got);
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status File::Scan(
    absl::FunctionRef<absl::Status(int64_t offset, absl::string_view piece)>
        visit) const {
  if (fd_ >= 0) posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<char> buffer(std::min(kScanBytes, bytes()));
  for (int64_t offset = 0; offset < bytes(); offset += kScanBytes) {
    const size_t size = std::min(kScanBytes, bytes() - offset);
    RETURN_IF_ERROR(Read(
        offset,
        absl::MakeSpan(reinterpret_cast<std::byte*>(buffer.data()), size)));
    RETURN_IF_ERROR(visit(offset, absl::string_view(buffer.data(), size)));
    if (piece_done_) piece_done_();
  }
  // The order of training is random.
  if (fd_ >= 0) posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);
  return absl::OkStatus();
}

}  // namespace penstock::server::data
