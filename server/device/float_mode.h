// Denormal numbers: flushed to zero, on every device and every thread.
//
// A denormal operand costs about a hundred cycles on most CPUs, and GPUs flush
// them in fast modes; so results are defined with FTZ (results) and DAZ
// (operands) on (docs/numerics.md). The mode belongs to the thread: every
// thread that runs ops of a CPU device has it set. An inline stream sets it in
// whichever thread calls an op, and leaves it set; a thread pool's workers set
// it when they start.
#ifndef PENSTOCK_SERVER_DEVICE_FLOAT_MODE_H_
#define PENSTOCK_SERVER_DEVICE_FLOAT_MODE_H_

#include <xmmintrin.h>

namespace penstock::server::device {

inline constexpr unsigned kFlushDenormals = 0x8000u | 0x0040u;  // FTZ | DAZ

// Sets FTZ and DAZ in the calling thread. A few nanoseconds when already set.
inline void SetFlushDenormals() {
  const unsigned mode = _mm_getcsr();
  if ((mode & kFlushDenormals) != kFlushDenormals) {
    _mm_setcsr(mode | kFlushDenormals);
  }
}

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_FLOAT_MODE_H_
