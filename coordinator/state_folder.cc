#include "coordinator/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace penstock::coordinator {
namespace {

absl::Status Unusable(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--state-dir ", path, ": ", why));
}

std::string Words(int error) { return std::generic_category().message(error); }

// Who wrote its pid into the lock; "" where nobody did.
std::string Holder(int lock) {
  char bytes[32];
  const ssize_t count = pread(lock, bytes, sizeof(bytes), 0);
  return count <= 0 ? ""
                    : std::string(absl::StripAsciiWhitespace(absl::string_view(
                          bytes, static_cast<size_t>(count))));
}

}  // namespace

absl::StatusOr<StateFolder> StateFolder::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Unusable(path, Words(error.value()));
  if (!std::filesystem::is_directory(path, error)) {
    return Unusable(path, Words(ENOTDIR));
  }
  const std::string absolute = std::filesystem::canonical(path, error).string();
  if (error) return Unusable(path, Words(error.value()));
  common::file::Fd lock(open(absl::StrCat(absolute, "/lock").c_str(),
                             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!lock.open()) return Unusable(path, Words(errno));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Unusable(path, Words(errno));
    const std::string holder = Holder(lock.get());
    return absl::AlreadyExistsError(
        absl::StrCat("--state-dir ", path, ": another coordinator",
                     holder.empty() ? "" : absl::StrCat(" (pid ", holder, ")"),
                     " uses it; give each a folder of its own"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) !=
          static_cast<ssize_t>(pid.size())) {
    return Unusable(path, Words(errno));
  }
  return StateFolder(absolute, std::move(lock));
}

}  // namespace penstock::coordinator
