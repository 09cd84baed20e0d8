#include "common/process/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace penstock::common::process {

absl::Status OpenStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free is this one.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
      return absl::UnavailableError(absl::StrCat(
          "descriptor ", fd,
          " is closed, and /dev/null does not open: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::Status RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return absl::InternalError(
        absl::StrCat("getrlimit(RLIMIT_NOFILE): ", std::strerror(errno)));
  }
  if (limit.rlim_max < kLeastDescriptors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this process may open only ", limit.rlim_max,
        " files and sockets, and needs ", kLeastDescriptors,
        "; raise the limit (ulimit -Hn, or LimitNOFILE of its service)"));
  }
  if (limit.rlim_cur == limit.rlim_max) return absl::OkStatus();
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("setrlimit(RLIMIT_NOFILE): ", std::strerror(errno)));
}

}  // namespace penstock::common::process
