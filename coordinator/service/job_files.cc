#include "coordinator/service/job_files.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file/file.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;

using common::status::FileError;

constexpr int64_t kMaxProbeBytes = 1024;

std::string PathOf(const dispatch::WriteJobFile& write) {
  return (fs::path(write.directory) / write.name).string();
}

// In bytes; 0 where there is none.
uint64_t LengthOf(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

// All of `contents` or nothing: the lines before stay whole.
absl::Status Append(const std::string& path, const std::string& contents) {
  ASSIGN_OR_RETURN(common::file::File file,
                   common::file::File::OpenForAppend(path));
  absl::Status status = file.Write(contents);
  if (!status.ok() && !file.Truncate(file.bytes()).ok()) {
    status = common::status::Annotate(
        status, "the last line is torn and could not be taken back");
  }
  status.Update(file.Close());
  return status;
}

// Makes `folder`, which lies in the job's.
absl::Status MakeFolder(const fs::path& folder, const std::string& directory,
                        MissingFolder missing) {
  std::error_code error;
  if (missing == MissingFolder::kFail && !fs::is_directory(directory, error)) {
    return FileError(
        ENOENT, absl::StrCat("writing into ", folder.string(), ": the folder ",
                             directory, " was removed or renamed"));
  }
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return FileError(error.value(), absl::StrCat("making ", folder.string()));
}

using ExpectedFile = dispatch::ChangeJobFolder::ExpectedFile;

// That the file is here as another process says, which removes it.
absl::Status Confirm(const fs::path& path, const ExpectedFile& expected) {
  const absl::StatusOr<std::string> contents =
      common::file::ReadFile(path.string(), kMaxProbeBytes);
  if (contents.ok() && *contents == expected.contents) {
    std::error_code ignored;
    fs::remove(path, ignored);
    return absl::OkStatus();
  }
  return common::status::WithReason(
      absl::NotFoundError(
          absl::StrCat(expected.stage_name, " on host ", expected.host,
                       " wrote ", path.string(),
                       ", and it is not here; the run directory must be one "
                       "folder that all hosts share")),
      common::status::kReasonInputNotVisible);
}

}  // namespace

absl::Status WriteNow(const dispatch::WriteJobFile& write,
                      MissingFolder missing) {
  const std::string path = PathOf(write);
  RETURN_IF_ERROR(
      MakeFolder(fs::path(path).parent_path(), write.directory, missing));

  if (write.mode == dispatch::WriteJobFile::Mode::kAppend) {
    return Append(path, write.contents);
  }
  return common::file::ReplaceFile({.path = path, .contents = write.contents});
}

dispatch::FolderChanged ChangeNow(const dispatch::ChangeJobFolder& change,
                                  MissingFolder missing) {
  using Change = dispatch::ChangeJobFolder::Change;
  dispatch::FolderChanged done{.job_id = change.job_id,
                               .change = change.change};
  const fs::path path = fs::path(change.directory) / change.name;
  switch (change.change) {
    case Change::kMake:
      done.status = MakeFolder(path, change.directory, missing);
      break;
    case Change::kConfirm:
      for (const ExpectedFile& expected : change.expected) {
        done.status = Confirm(path / expected.name, expected);
        if (done.status.ok()) continue;
        done.stage_name = expected.stage_name;
        break;
      }
      break;
    case Change::kPublish:
      done.status = common::file::RenameDurably(
          path.string(), (fs::path(change.directory) / change.to).string());
      break;
    case Change::kFlush:
      break;
    case Change::kRemove: {
      std::error_code error;
      fs::remove_all(path, error);
      if (error) {
        done.status =
            FileError(error.value(), absl::StrCat("removing ", path.string()));
      }
      break;
    }
  }
  return done;
}

JobFiles::JobFiles(Listener listener) : listener_(std::move(listener)) {}

MissingFolder JobFiles::IfMissing(const std::string& directory) const {
  return folders_.count(directory) > 0 ? MissingFolder::kFail
                                       : MissingFolder::kMake;
}

bool JobFiles::HasLostLines(const dispatch::WriteJobFile& write) const {
  const auto folder = folders_.find(write.directory);
  if (folder == folders_.end()) return false;
  const std::string path = PathOf(write);
  const auto before = folder->second.length.find(path);
  return before != folder->second.length.end() &&
         LengthOf(path) < before->second;
}

void JobFiles::Post(dispatch::WriteJobFile write) {
  queue_.Post([this, write = std::move(write)] {
    const bool lost = HasLostLines(write);
    const absl::Status status = WriteNow(write, IfMissing(write.directory));
    if (!status.ok()) {
      listener_.on_failure(write, status);
      return;
    }
    Folder& folder = folders_[write.directory];
    if (write.mode != dispatch::WriteJobFile::Mode::kAppend) return;
    const std::string path = PathOf(write);
    folder.length[path] = LengthOf(path);
    if (lost && folder.lost.insert(path).second) listener_.on_lost(write);
  });
}

void JobFiles::Forget(const std::string& directory) {
  queue_.Post([this, directory] { folders_.erase(directory); });
}

void JobFiles::Post(dispatch::ChangeJobFolder change) {
  queue_.Post([this, change = std::move(change)] {
    const dispatch::FolderChanged done =
        ChangeNow(change, IfMissing(change.directory));
    if (done.change == dispatch::ChangeJobFolder::Change::kRemove) {
      // The job has ended already, and for another reason.
      if (!done.status.ok()) {
        LOG(WARNING) << "job " << change.job_id << ": " << done.status;
      }
      return;
    }
    if (done.change == dispatch::ChangeJobFolder::Change::kMake &&
        done.status.ok()) {
      folders_.try_emplace(change.directory);
    }
    listener_.on_change(done);
  });
}

}  // namespace penstock::coordinator::service
