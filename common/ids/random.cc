#include "common/ids/random.h"

#include <errno.h>
#include <sys/random.h>

#include "common/log/log.h"

namespace penstock::common::ids {

RandomSource SystemRandom() {
  return [] {
    uint64_t bits = 0;
    ssize_t got;
    do {
      got = getrandom(&bits, sizeof(bits), 0);
    } while (got < 0 && errno == EINTR);
    // Eight bytes come whole or not at all, once the kernel's pool is ready.
    CHECK_EQ(got, static_cast<ssize_t>(sizeof(bits)));
    return bits;
  };
}

}  // namespace penstock::common::ids
