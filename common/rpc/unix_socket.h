// How a server takes the path of its Unix socket, and gives it back, without
// ever removing the socket of another.
//
// gRPC removes what is at its path before it binds, and once more when its last
// connection has closed: by then it has long refused new ones, and the path may
// be a successor's. So it is given another name in the same folder, and the
// socket is moved to the path once it can be connected to.
#ifndef PENSTOCK_COMMON_RPC_UNIX_SOCKET_H_
#define PENSTOCK_COMMON_RPC_UNIX_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"

namespace penstock::common::rpc {

// A name that nobody else has, in the folder of `path`, and no longer than a
// socket's may be: "DIR/~0123456789abcdef".
std::string UnpublishedPath(const std::string& path);

// A socket that is at the path of its address until this is destroyed, or
// another one is there. Immutable.
class PublishedSocket {
 public:
  // Moves the listening socket from UnpublishedPath() to the path of `address`,
  // in place of one that nobody answers on; of two that do so at once one has
  // it. AlreadyExists and Unavailable as CheckUnixSocketFree, and Unavailable
  // with the kernel's word where it cannot be moved.
  static absl::StatusOr<PublishedSocket> Publish(const std::string& from,
                                                 const Address& address);
  ~PublishedSocket();
  PublishedSocket(PublishedSocket&& other) noexcept;
  PublishedSocket& operator=(PublishedSocket&&) = delete;

 private:
  PublishedSocket(const std::string& path, dev_t device, ino_t inode)
      : path_(path), device_(device), inode_(inode) {}

  std::string path_;  // Empty: moved from.
  const dev_t device_;
  const ino_t inode_;
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_UNIX_SOCKET_H_
