// An order between threads that goes through code TSan cannot see (gRPC hands a
// reaction from one of its threads to another). Release before starting an
// operation, Acquire first in its reaction. One tag per chain of operations of
// one object: a tag shared more widely would hide real races. Does nothing
// outside the ThreadSanitizer build.
#ifndef PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_
#define PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_

#if PENSTOCK_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace penstock::common::sync {

class HappensBefore {
 public:
#if PENSTOCK_TSAN
  __attribute__((no_sanitize("thread"))) void Release() {
    __tsan_release(&tag_);
  }
  __attribute__((no_sanitize("thread"))) void Acquire() {
    __tsan_acquire(&tag_);
  }

 private:
  char tag_ = 0;
#else
  void Release() {}
  void Acquire() {}
#endif
};

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_
