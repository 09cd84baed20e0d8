// Random access to one data file that may be larger than memory.
//
// Reads are pread(2), not a mapping: a file that somebody truncates during the
// job gives an error that names it, never a SIGBUS.
#ifndef PENSTOCK_SERVER_DATA_INPUT_FILE_H_
#define PENSTOCK_SERVER_DATA_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/file/file.h"

namespace penstock::server::data {

// kKept: one descriptor for the file's life. kEachRead: opened for each read,
// for sets of so many files that descriptors would run out.
enum class Descriptor { kKept, kEachRead };

// What common/file says of a path that could not be opened, as an error of the
// data: InvalidArgument, reason INPUT_NOT_VISIBLE, where the path is at fault
// (nothing there, not permitted, another kind of file). Any other error, as too
// many open files or a failing disk, stays what it is.
absl::Status NotVisible(const absl::Status& error);

// DataLoss, reason INPUT_NOT_VISIBLE: the file is no longer the one that was
// opened; `how` says what is different.
absl::Status FileChanged(absl::string_view path, absl::string_view how);

// Called for each piece of a scan: data that are read are no silence, however
// long it takes. Its error ends the scan. Must not block.
using PieceDone = std::function<absl::Status()>;

// A regular file as it was when it was opened. Thread-safe.
class InputFile {
 public:
  // NotVisible() when `path` cannot be opened or is no regular file (a FIFO is
  // refused without waiting for its writer).
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      absl::string_view path, Descriptor descriptor, PieceDone piece_done = {});
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t bytes() const { return identity_.bytes; }

  // Fills `out` from `offset` on. REQUIRES: the range lies within bytes().
  // FileChanged() when the file is no longer the one that was opened;
  // common/status/file_error.h when it cannot be read.
  absl::Status Read(int64_t offset, absl::Span<std::byte> out) const;

  // Hands the whole file to `visit` in order, in pieces of 1 MiB (the last
  // may be shorter); stops at the first error, PieceDone's too, and returns it.
  absl::Status Scan(
      absl::FunctionRef<absl::Status(int64_t offset, absl::string_view piece)>
          visit) const;

 private:
  InputFile(common::file::File file, Descriptor descriptor,
            PieceDone piece_done);
  absl::Status ReadFrom(const common::file::File& file, int64_t offset,
                        absl::Span<std::byte> out) const;

  const std::string path_;
  const common::file::FileIdentity identity_;
  const std::optional<common::file::File> file_;  // Where it is kept.
  const PieceDone piece_done_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_INPUT_FILE_H_
