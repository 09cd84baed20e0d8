// Memory that ops use while they run, kept between ops.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_
#define PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "common/log/log.h"

namespace penstock::server::device::cpu {

// 64-byte aligned; grows, never shrinks. Thread-compatible.
class Scratch {
 public:
  // At least `floats` of undefined content, until the next call.
  float* Floats(int64_t floats) {
    if (floats > floats_) {
      memory_.reset();
      void* memory = nullptr;
      CHECK(posix_memalign(&memory, 64, floats * sizeof(float)) == 0)
          << "no memory for " << floats * sizeof(float) << " bytes of scratch";
      memory_.reset(static_cast<float*>(memory));
      floats_ = floats;
    }
    return memory_.get();
  }
  double* Doubles(int64_t doubles) {
    return reinterpret_cast<double*>(Floats(2 * doubles));
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  int64_t floats_ = 0;
};

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_
