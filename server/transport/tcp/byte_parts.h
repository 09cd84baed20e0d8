// The places of one readv() or sendmsg(): at most three, in order.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_BYTE_PARTS_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_BYTE_PARTS_H_

#include <sys/uio.h>

#include <cstddef>

namespace penstock::server::transport::tcp {

struct ByteParts {
  iovec list[3];
  int count = 0;
  size_t bytes = 0;  // Of all.

  // Leaves empty places out.
  void Add(const void* data, size_t size) {
    if (size == 0) return;
    list[count++] = {const_cast<void*>(data), size};
    bytes += size;
  }
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_BYTE_PARTS_H_
