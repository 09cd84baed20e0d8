// Shows TSan the locks of abseil that gRPC's headers take: their inline code
// is compiled into ours, and what it does under its lock (an early answer is
// handed to the thread that binds the call) is in order only through it.
// Debian's abseil is not instrumented, so the linker (--wrap) leads calls from
// our objects here. Only in the ThreadSanitizer build.
#include <sanitizer/tsan_interface.h>

extern "C" {
// absl::Mutex::Lock() and Unlock(), in Debian's inline namespace.
void __real__ZN4absl7debian35Mutex4LockEv(void* mutex);
void __real__ZN4absl7debian35Mutex6UnlockEv(void* mutex);

void __wrap__ZN4absl7debian35Mutex4LockEv(void* mutex) {
  __real__ZN4absl7debian35Mutex4LockEv(mutex);
  __tsan_acquire(mutex);
}

void __wrap__ZN4absl7debian35Mutex6UnlockEv(void* mutex) {
  __tsan_release(mutex);
  __real__ZN4absl7debian35Mutex6UnlockEv(mutex);
}
}
