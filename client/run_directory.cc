#include "client/run_directory.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/file/folder.h"
#include "common/ids/result_names.h"
#include "common/status/status_macros.h"

namespace penstock::client {
namespace {

namespace fs = std::filesystem;
using common::ids::kLogFolder;
using common::ids::kUnfinishedModel;

constexpr int kMostAttempts = 100;

// Another path would do, unless the machine has no room.
absl::Status Failed(const std::string& what, const fs::path& path,
                    const std::error_code& error) {
  const std::string text =
      absl::StrCat(what, " ", path.string(), ": ", error.message());
  for (const int no_room :
       {ENOSPC, EDQUOT, EIO, EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    if (error.value() == no_room) return absl::UnavailableError(text);
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace

absl::Status CheckFresh(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) return Failed("run directory", path, error);
    if (fs::is_symlink(path, error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "run directory ", path, " is a link to something that is not there"));
    }
    return absl::OkStatus();
  }
  if (!fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("run directory ", path, " exists and is no folder"));
  }
  const bool empty = fs::is_empty(path, error);
  if (error) return Failed("run directory", path, error);
  if (!empty) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run directory ", path,
        " is not empty; give another --run-dir, or remove what is in it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunDirectory> RunDirectory::Create(const std::string& path) {
  RETURN_IF_ERROR(CheckFresh(path));
  std::error_code error;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (error) return Failed("run directory", path, error);
  if (!whole.has_filename()) whole = whole.parent_path();  // "runs/mine/"
  if (!fs::exists(whole, error)) return CreateNew(whole.string());
  fs::create_directory(whole / kLogFolder, error);
  if (error) return Failed("cannot make", whole / kLogFolder, error);
  return RunDirectory(whole.string(), /*existed=*/true);
}

absl::StatusOr<RunDirectory> RunDirectory::CreateNew(const std::string& path) {
  std::error_code error;
  const fs::path whole = path;
  RunDirectory made(path, /*existed=*/false);
  for (fs::path above = whole.parent_path();
       above.has_relative_path() && !fs::exists(above, error);
       above = above.parent_path()) {
    made.made_parents_.push_back(above.string());
  }
  fs::create_directories(whole.parent_path(), error);
  if (error) return Failed("cannot make", whole.parent_path(), error);
  // Whoever makes it has it, of two runs at once.
  if (!fs::create_directory(whole, error) && !error) {
    return absl::AlreadyExistsError(
        absl::StrCat("run directory ", path, " was made by another run"));
  }
  if (error) {
    made.RemoveParents();
    return Failed("cannot make", whole, error);
  }
  fs::create_directory(whole / kLogFolder, error);
  if (error) {
    made.Remove();
    return Failed("cannot make", whole / kLogFolder, error);
  }
  return made;
}

absl::StatusOr<RunDirectory> RunDirectory::CreateDefault(
    const std::string& working_directory, const std::string& name,
    absl::Time now) {
  const fs::path runs = fs::path(working_directory) / "runs";
  std::error_code error;
  const std::string stem = absl::StrCat(
      name, "-", absl::FormatTime("%Y%m%d-%H%M%S", now, absl::LocalTimeZone()));
  fs::path path = runs / stem;
  absl::StatusOr<RunDirectory> made = CreateNew(path.string());
  for (int i = 2; absl::IsAlreadyExists(made.status()) && i < kMostAttempts;
       ++i) {
    path = runs / absl::StrCat(stem, "-", i);
    made = CreateNew(path.string());
  }
  RETURN_IF_ERROR(made.status());
  made->MakeLink(runs.string());
  return made;
}

void RunDirectory::MakeLink(const std::string& runs) {
  std::error_code error;
  const fs::path link = fs::path(runs) / "latest";
  const fs::path target = fs::path(path_).filename();
  if (fs::is_symlink(link, error)) {
    link_before_ = fs::read_symlink(link, error).string();
  } else if (fs::exists(link, error)) {
    note_ = absl::StrCat(link.string(), " is no link and stays as it is");
    return;
  }
  // A new link takes the old one's place in one step.
  const fs::path fresh =
      fs::path(runs) / absl::StrCat(".latest-", target.string());
  fs::create_directory_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) {
    std::error_code ignored;
    fs::remove(fresh, ignored);
    note_ = absl::StrCat("cannot make the link ", link.string(), ": ",
                         error.message());
    return;
  }
  link_ = link.string();
}

std::string RunDirectory::logs() const {
  return (fs::path(path_) / kLogFolder).string();
}

void RunDirectory::RemoveUnfinished() const {
  std::error_code ignored;
  for (const auto& entry : common::file::ListFolder(path_, ignored)) {
    if (absl::StartsWith(entry.path().filename().string(), kUnfinishedModel)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

void RunDirectory::Remove() {
  std::error_code ignored;
  if (existed_) {
    for (const auto& entry : common::file::ListFolder(path_, ignored)) {
      fs::remove_all(entry.path(), ignored);
    }
  } else {
    fs::remove_all(path_, ignored);
  }
  // Another run may have taken the link since.
  if (!link_.empty() &&
      fs::read_symlink(link_, ignored) == fs::path(path_).filename()) {
    fs::remove(link_, ignored);
    if (!link_before_.empty()) {
      fs::create_directory_symlink(link_before_, link_, ignored);
    }
  }
  RemoveParents();
}

void RunDirectory::RemoveParents() {
  std::error_code ignored;
  for (const std::string& parent : made_parents_) fs::remove(parent, ignored);
}

}  // namespace penstock::client
