// Files of the disk, read and written whole: all loops over short reads and
// writes, and the way a file gets its final name, are here.
//
// Errors begin with the path and are common/status/file_error.h's, with a
// reason; others are named at the method.
#ifndef PENSTOCK_COMMON_FILE_FILE_H_
#define PENSTOCK_COMMON_FILE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/file/fd.h"

namespace penstock::common::file {

// Whether two files that were opened are one and the same, unchanged.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

// An open file. Thread-compatible; the const methods are thread-safe.
class File {
 public:
  // A regular file. InvalidArgument for everything else, said by its kind and
  // without waiting for it (a FIFO's writer).
  static absl::StatusOr<File> OpenForRead(const std::string& path);
  // A new or emptied file, for writing. Its mode is the umask's.
  static absl::StatusOr<File> Create(const std::string& path);
  // For writing at the end; made where there is none.
  static absl::StatusOr<File> OpenForAppend(const std::string& path);

  File(File&&) noexcept = default;
  File& operator=(File&&) noexcept = default;

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_.get(); }
  // As it was when it was opened.
  const FileIdentity& identity() const { return identity_; }
  int64_t bytes() const { return identity_.bytes; }
  // As it is now: whoever writes to it in place changes that.
  absl::StatusOr<FileIdentity> CurrentIdentity() const;

  // Fills `out` from `offset` on, as far as the file goes: returns how many
  // bytes that were, fewer than out.size() only at the file's end.
  absl::StatusOr<size_t> ReadUpTo(int64_t offset,
                                  absl::Span<std::byte> out) const;
  // Exactly out.size() bytes. DataLoss with reason INPUT_NOT_VISIBLE when the
  // file ends before.
  absl::Status ReadAt(int64_t offset, absl::Span<std::byte> out) const;

  // All of `bytes`, after what was written before.
  absl::Status Write(absl::Span<const std::byte> bytes);
  absl::Status Write(absl::string_view bytes);
  // Cuts the file to its first `bytes`.
  absl::Status Truncate(int64_t bytes);

  // Closes the file, also on an error. Without it, an error at closing is not
  // seen.
  absl::Status Close();
  // The same, once what was written is durable.
  absl::Status SyncAndClose();

 private:
  File(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  static absl::StatusOr<File> Open(const std::string& path, int flags);

  std::string path_;
  Fd fd_;
  FileIdentity identity_;
};

// Makes the entries of a folder durable, as far as its file system can: some
// of networks and of user space do not sync folders, which is no error.
absl::Status SyncFolder(const std::string& folder);

// Renames within a folder, then SyncFolder(): on an error of that the new name
// is there, but a power cut may take it back.
absl::Status RenameDurably(const std::string& from, const std::string& to);

struct ReplaceFileArgs {
  std::string path;
  absl::string_view contents;
  std::string temporary_suffix = ".tmp";
};
// Makes `path` a file of `contents`, durably: written as `path` +
// `temporary_suffix`, RenameDurably(). Nobody ever sees half of it. On an error
// what was there before is there still, or where only its folder could not be
// synced, the new file; the temporary file is gone.
absl::Status ReplaceFile(const ReplaceFileArgs& args);

// All of a regular file. InvalidArgument above `limit` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t limit);

}  // namespace penstock::common::file

#endif  // PENSTOCK_COMMON_FILE_FILE_H_
