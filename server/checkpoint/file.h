// A file descriptor with an owner, and the few calls on it that this folder
// needs. Errors of the system are common/status/file_error.h's, with the path.
#ifndef PENSTOCK_SERVER_CHECKPOINT_FILE_H_
#define PENSTOCK_SERVER_CHECKPOINT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::server::checkpoint {

// Thread-compatible; ReadAt is thread-safe.
class File {
 public:
  // A regular file, for reading. NotFound, PermissionDenied, ...;
  // InvalidArgument when it is no regular file.
  static absl::StatusOr<File> OpenForRead(const std::string& path);
  // A new or emptied file, for writing.
  static absl::StatusOr<File> Create(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  // Size when it was opened for reading.
  int64_t bytes() const { return bytes_; }

  // Exactly bytes.size() bytes from `offset`. DataLoss when the file ends
  // before.
  absl::Status ReadAt(int64_t offset, absl::Span<std::byte> bytes) const;

  // Appends.
  absl::Status Write(absl::Span<const std::byte> bytes);
  // Durable on disk: fsync and close. The file is closed afterwards, also on an
  // error.
  absl::Status SyncAndClose();

 private:
  File(std::string path, int descriptor, int64_t bytes);

  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

// Renames within a folder, then makes the folder's entry durable.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Writes `text` to `path` through `path` + `temporary_suffix`: fsync, rename.
// On an error the temporary file is gone.
struct WriteTextArgs {
  std::string path;
  absl::string_view text;
  std::string temporary_suffix;
};
absl::Status WriteTextFile(const WriteTextArgs& args);

// All of a text file. ResourceExhausted above `limit` bytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         int64_t limit);

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_FILE_H_
