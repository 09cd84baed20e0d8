// An order between threads that goes through code TSan cannot see (gRPC hands a
// reaction from one of its threads to another). Release before starting an
// operation, Acquire first in its reaction. One tag per chain of operations of
// one object: a tag shared more widely would hide real races. Does nothing
// outside the ThreadSanitizer build.
#ifndef PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_
#define PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_

#if PENSTOCK_TSAN
#include <sanitizer/tsan_interface.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace penstock::common::sync {

// Thread-safe.
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

// While one lives, TSan does not look at what this thread does. Only around one
// call of a library that does its own locking out of TSan's sight: gRPC's
// Finish() moves a string under a lock of its own, and the thread that binds
// the reactor reads it there. Confined to the thread that makes it.
class HiddenLocking {
 public:
#if PENSTOCK_TSAN
  HiddenLocking() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~HiddenLocking() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  HiddenLocking() {}
#endif
  HiddenLocking(const HiddenLocking&) = delete;
  HiddenLocking& operator=(const HiddenLocking&) = delete;
};

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_HAPPENS_BEFORE_H_
