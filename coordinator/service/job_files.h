// Writes the files of job result folders, off the core's thread.
#ifndef PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_
#define PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/sync/serial_queue.h"
#include "coordinator/dispatch/actions.h"

namespace penstock::coordinator::service {

// What to do where the job's folder is not there.
enum class MissingFolder {
  kMake,
  kFail,  // NotFound: somebody removed or renamed it.
};

// Carries out one write, whole or not at all. Errors name the path and have the
// reason that the job fails with (common/status/file_error.h).
absl::Status WriteNow(const dispatch::WriteJobFile& write,
                      MissingFolder missing = MissingFolder::kMake);

// Carries out one change of a folder; errors as of WriteNow.
dispatch::FolderChanged ChangeNow(const dispatch::ChangeJobFolder& change,
                                  MissingFolder missing = MissingFolder::kMake);

// Thread-safe. Writes and changes of one JobFiles happen in the order of
// Post(). The first one of a job makes its folder; a folder that is gone later
// is not made again, because half of the results would be missing in it.
class JobFiles {
 public:
  // Called on the writer's thread.
  struct Listener {
    // Of each failed write.
    std::function<void(const dispatch::WriteJobFile&, const absl::Status&)>
        on_failure;
    // After a line was appended to a file that has lost earlier ones; once a
    // file.
    std::function<void(const dispatch::WriteJobFile&)> on_lost;
    // Of each change but kRemove.
    std::function<void(const dispatch::FolderChanged&)> on_change;
  };
  explicit JobFiles(Listener listener);

  void Post(dispatch::WriteJobFile write);
  void Post(dispatch::ChangeJobFolder change);
  // Nothing more is written to this folder: what is known of it goes. No file
  // does.
  void Forget(const std::string& directory);
  // Returns when everything posted before is written.
  void Drain() { queue_.Drain(); }

 private:
  MissingFolder IfMissing(const std::string& directory) const;

  // Whether the file that a line is appended to is shorter than it was.
  bool HasLostLines(const dispatch::WriteJobFile& write) const;

  const Listener listener_;
  // What was made. Files of lines, by path:
  struct Folder {
    std::map<std::string, uint64_t> length;  // In bytes.
    std::set<std::string> lost;              // Told about.
  };
  std::map<std::string, Folder> folders_;  // On queue_ only.
  common::sync::SerialQueue queue_;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_
