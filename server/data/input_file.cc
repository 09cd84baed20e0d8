#include "server/data/input_file.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {
namespace {

constexpr int64_t kScanBytes = int64_t{1} << 20;

absl::StatusOr<common::file::File> OpenVisible(const std::string& path) {
  absl::StatusOr<common::file::File> file =
      common::file::File::OpenForRead(path);
  if (file.ok()) return file;
  return NotVisible(file.status());
}

}  // namespace

absl::Status NotVisible(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:  // Another kind of file.
      return common::status::WithReason(
          absl::InvalidArgumentError(error.message()),
          common::status::kReasonInputNotVisible);
    default:
      return error;
  }
}

absl::Status FileChanged(absl::string_view path, absl::string_view how) {
  return common::status::WithReason(
      absl::DataLossError(absl::StrCat(
          path, ": ", how, "; data files must stay as they are during a job")),
      common::status::kReasonInputNotVisible);
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    absl::string_view path, Descriptor descriptor, PieceDone piece_done) {
  ASSIGN_OR_RETURN(common::file::File file, OpenVisible(std::string(path)));
  return std::unique_ptr<InputFile>(
      new InputFile(std::move(file), descriptor, std::move(piece_done)));
}

InputFile::InputFile(common::file::File file, Descriptor descriptor,
                     PieceDone piece_done)
    : path_(file.path()),
      identity_(file.identity()),
      file_(descriptor == Descriptor::kKept
                ? std::optional<common::file::File>(std::move(file))
                : std::nullopt),
      piece_done_(std::move(piece_done)) {}

absl::Status InputFile::Read(int64_t offset, absl::Span<std::byte> out) const {
  CHECK(offset >= 0 && static_cast<int64_t>(out.size()) <= bytes() - offset)
      << path_ << ": read of " << out.size() << " bytes at " << offset;
  if (file_.has_value()) return ReadFrom(*file_, offset, out);
  ASSIGN_OR_RETURN(const common::file::File file, OpenVisible(path_));
  if (file.identity() != identity_) {
    return FileChanged(path_, "was changed or replaced since the job read it");
  }
  return ReadFrom(file, offset, out);
}

absl::Status InputFile::ReadFrom(const common::file::File& file, int64_t offset,
                                 absl::Span<std::byte> out) const {
  ASSIGN_OR_RETURN(const size_t read, file.ReadUpTo(offset, out));
  // After the read: what was written before it ended is not missed, but for
  // writes of the same clock tick (some ms) as the last before the job opened
  // the file.
  ASSIGN_OR_RETURN(const common::file::FileIdentity now,
                   file.CurrentIdentity());
  if (read == out.size() && now == identity_) return absl::OkStatus();
  return FileChanged(
      path_, now.bytes == bytes()
                 ? "was written to since the job read it"
                 : absl::StrCat("has ", now.bytes, " bytes, but had ", bytes(),
                                " when the job read it"));
}

absl::Status InputFile::Scan(
    absl::FunctionRef<absl::Status(int64_t offset, absl::string_view piece)>
        visit) const {
  const auto advise = [this](int advice) {
    if (file_) posix_fadvise(file_->descriptor(), 0, 0, advice);
  };
  advise(POSIX_FADV_SEQUENTIAL);
  std::vector<char> buffer(std::min(kScanBytes, bytes()));
  for (int64_t offset = 0; offset < bytes(); offset += kScanBytes) {
    const size_t size = std::min(kScanBytes, bytes() - offset);
    RETURN_IF_ERROR(Read(
        offset,
        absl::MakeSpan(reinterpret_cast<std::byte*>(buffer.data()), size)));
    RETURN_IF_ERROR(visit(offset, absl::string_view(buffer.data(), size)));
    if (piece_done_) RETURN_IF_ERROR(piece_done_());
  }
  // The order of training is random.
  advise(POSIX_FADV_RANDOM);
  return absl::OkStatus();
}

}  // namespace penstock::server::data
