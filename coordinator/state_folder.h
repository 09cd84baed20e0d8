// The coordinator's folder on disk (--state-dir): made, found writable, and
// this process's alone. It holds
//   lock   pid of the process that has the folder
//   term   starts of a coordinator on it: a decimal number and a line's end
//   jobs/  a folder a job, with its results (service/job_files.h)
#ifndef PENSTOCK_COORDINATOR_STATE_FOLDER_H_
#define PENSTOCK_COORDINATOR_STATE_FOLDER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file/fd.h"

namespace penstock::coordinator {

// Thread-compatible. Held for as long as the coordinator serves; the kernel
// lets go of it when the process ends, however that is.
class StateFolder {
 public:
  // Makes the folder and those above it. Errors name the folder and the reason:
  // AlreadyExists: another process holds it, with its pid. InvalidArgument: it
  // is no folder, or cannot be made or written to.
  static absl::StatusOr<StateFolder> Open(const std::string& path);

  StateFolder(StateFolder&&) noexcept = default;
  StateFolder& operator=(StateFolder&&) noexcept = default;

  // The term of this start: one more than the last one's, which `term` in the
  // folder keeps, durable before this returns. InvalidArgument: that file is
  // damaged, or cannot be read or written; it is named.
  absl::StatusOr<int64_t> NextTerm();

  // Absolute.
  const std::string& path() const { return path_; }

 private:
  StateFolder(std::string path, common::file::Fd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  common::file::Fd lock_;
};

}  // namespace penstock::coordinator

#endif  // PENSTOCK_COORDINATOR_STATE_FOLDER_H_
