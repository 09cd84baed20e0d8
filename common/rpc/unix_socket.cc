#include "common/rpc/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/random.h"
#include "common/rpc/bind_check.h"
#include "common/status/status_macros.h"

namespace penstock::common::rpc {
namespace {

// Of "a/b" it is "a/", of "b" nothing.
std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// Keeps other servers from what is between a look at a path of the folder and
// the change that follows. Held for a few system calls; the kernel gives it up
// for a process that is killed. Where the file system has no locks, or another
// program keeps this one for a second, two servers that start in the same
// millisecond are not kept apart.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(open(folder.empty() ? "." : folder.c_str(),
                 O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) return;
    for (int tries = 0; tries < 100; ++tries) {
      if (flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      poll(nullptr, 0, 10);
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int fd_;
};

}  // namespace

std::string UnpublishedPath(const std::string& path) {
  const std::string folder = FolderOf(path);
  std::string name =
      absl::StrCat("~", absl::Hex(ids::SystemRandom()(), absl::kZeroPad16));
  name.resize(std::min(name.size(), kMaxUnixPathBytes - folder.size()));
  return absl::StrCat(folder, name);
}

absl::StatusOr<PublishedSocket> PublishedSocket::Publish(
    const std::string& from, const Address& address) {
  const FolderLock lock(FolderOf(address.path));
  RETURN_IF_ERROR(CheckUnixSocketFree(address));
  struct stat info {};
  if (lstat(from.c_str(), &info) != 0 ||
      std::rename(from.c_str(), address.path.c_str()) != 0) {
    return ListenError(address, errno);
  }
  return PublishedSocket(address.path, info.st_dev, info.st_ino);
}

PublishedSocket::PublishedSocket(PublishedSocket&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      device_(other.device_),
      inode_(other.inode_) {}

PublishedSocket::~PublishedSocket() {
  if (path_.empty()) return;
  const FolderLock lock(FolderOf(path_));
  struct stat info {};
  if (lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

}  // namespace penstock::common::rpc
