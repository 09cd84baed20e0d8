// A file descriptor with an owner: of a file, a folder or a socket.
#ifndef PENSTOCK_COMMON_FILE_FD_H_
#define PENSTOCK_COMMON_FILE_FD_H_

#include <utility>

namespace penstock::common::file {

// Thread-compatible.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  // Closes it. Errors are not seen: what was written and matters was closed by
  // File.
  void Reset();
  // The caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace penstock::common::file

#endif  // PENSTOCK_COMMON_FILE_FD_H_
