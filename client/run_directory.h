// The folder that `penstock run` leaves its results in.
#ifndef PENSTOCK_CLIENT_RUN_DIRECTORY_H_
#define PENSTOCK_CLIENT_RUN_DIRECTORY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock::client {

// Knows what was there before, so that a refused job leaves no trace.
// Thread-compatible.
class RunDirectory {
 public:
  // `path` must be absent or an empty folder. Makes it, with logs/ in it.
  // InvalidArgument where that path cannot be made, Unavailable where the
  // machine has no room, AlreadyExists: another process made it just now.
  static absl::StatusOr<RunDirectory> Create(const std::string& path);

  // runs/NAME-YYYYmmdd-HHMMSS below `working_directory` (a number is added
  // where that is taken), and the link runs/latest, unless something that is
  // no link stands there: note() says so.
  static absl::StatusOr<RunDirectory> CreateDefault(
      const std::string& working_directory, const std::string& name,
      absl::Time now);

  const std::string& path() const { return path_; }  // Absolute.
  std::string logs() const;
  // What the user should know of its making, or "".
  const std::string& note() const { return note_; }

  // Removes the folders of a model that has not become model/. REQUIRES: the
  // job's processes have ended.
  void RemoveUnfinished() const;

  // Removes what this object made and whatever was written there since. Folders
  // above it stay where something else is in them.
  void Remove();

 private:
  // `path` is absolute and must be made by this call: AlreadyExists otherwise.
  static absl::StatusOr<RunDirectory> CreateNew(const std::string& path);

  // Those that this object made and that are empty.
  void RemoveParents();

  RunDirectory(std::string path, bool existed)
      : path_(std::move(path)), existed_(existed) {}

  // Makes runs/latest, or says in note_ why not.
  void MakeLink(const std::string& runs);

  std::string path_;
  bool existed_ = false;
  std::string note_;
  std::string link_;         // runs/latest, where it was made,
  std::string link_before_;  // and where it pointed before.
  // Folders above path_ that were made for it, the innermost first.
  std::vector<std::string> made_parents_;
};

// The check alone: whether Create() would take `path`.
absl::Status CheckFresh(const std::string& path);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_RUN_DIRECTORY_H_
