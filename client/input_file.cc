#include "client/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::client {

absl::StatusOr<std::string> ReadInputFile(absl::string_view what,
                                          const std::string& path) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(what, " ", path, ": ", why));
  };
  // Not blocking: a pipe without a writer would never open.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return refused(std::strerror(errno));
  const absl::Cleanup closing = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return refused(std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return refused("is a folder, not a file");
  if (!S_ISREG(info.st_mode)) {
    return refused("is a pipe or a device; only regular files are read");
  }
  std::string bytes;
  char block[65536];
  while (true) {
    const ssize_t n = read(fd, block, sizeof(block));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(std::strerror(errno));
    if (n == 0) return bytes;
    bytes.append(block, n);
    if (static_cast<int64_t>(bytes.size()) > kMaxInputFileBytes) {
      return refused("has more than 1 MiB, which is the limit");
    }
  }
}

}  // namespace penstock::client
