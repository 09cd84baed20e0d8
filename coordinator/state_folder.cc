#include "coordinator/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/file/file.h"

namespace penstock::coordinator {
namespace {

constexpr int64_t kLongestTerm = 64;  // Bytes; a number has 19 digits.

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

// As NextTerm() writes it, and nothing else: a file that is cut short must not
// pass for a lower term.
std::optional<int64_t> ParseTerm(absl::string_view contents) {
  int64_t term = 0;
  if (!absl::ConsumeSuffix(&contents, "\n") ||
      !absl::SimpleAtoi(contents, &term) || term < 1 ||
      term == std::numeric_limits<int64_t>::max() ||
      absl::StrCat(term) != contents) {
    return std::nullopt;
  }
  return term;
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

absl::StatusOr<int64_t> StateFolder::NextTerm() {
  const std::string file = absl::StrCat(path_, "/term");
  int64_t last = 0;
  const absl::StatusOr<std::string> contents =
      common::file::ReadFile(file, kLongestTerm);
  if (contents.ok()) {
    const std::optional<int64_t> parsed = ParseTerm(*contents);
    if (!parsed.has_value()) {
      return Unusable(
          file,
          absl::StrCat("damaged: '", absl::CHexEscape(*contents),
                       "' is no number of a coordinator's start. Write into it "
                       "one that is higher than the term of every stage that "
                       "runs, or remove it when none runs"));
    }
    last = *parsed;
  } else if (!absl::IsNotFound(contents.status())) {
    return Unusable(file, std::string(contents.status().message()));
  }
  if (const absl::Status written = common::file::ReplaceFile(
          {.path = file, .contents = absl::StrCat(last + 1, "\n")});
      !written.ok()) {
    return Unusable(file, std::string(written.message()));
  }
  return last + 1;
}

}  // namespace penstock::coordinator
