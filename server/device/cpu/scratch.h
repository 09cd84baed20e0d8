// Memory that ops use while they run, kept between ops.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_
#define PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/device/device.h"
#include "server/device/host/host_memory.h"

namespace penstock::server::device::cpu {

// 64-byte aligned and counted as workspace; grows, never shrinks.
// Thread-compatible.
class Scratch {
 public:
  explicit Scratch(host::HostMemory memory) : memory_(std::move(memory)) {}

  // ResourceExhausted, and then there is none.
  absl::Status Reserve(int64_t floats) {
    if (floats <= floats_) return absl::OkStatus();
    floats_ = 0;
    buffer_.reset();
    ASSIGN_OR_RETURN(buffer_,
                     memory_.Allocate(Bytes(floats), MemoryUse::kWorkspace));
    floats_ = floats;
    return absl::OkStatus();
  }

  // At least `floats` of undefined content, until the next call. Allocates what
  // was not reserved, and dies where there is none.
  float* Floats(int64_t floats) {
    CHECK_OK(Reserve(floats));
    return buffer_ == nullptr ? nullptr
                              : reinterpret_cast<float*>(buffer_->data());
  }
  double* Doubles(int64_t doubles) {
    return reinterpret_cast<double*>(Floats(2 * doubles));
  }

  // Of a reservation: whole lines of 64 bytes.
  static constexpr int64_t Bytes(int64_t floats) {
    return (floats * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  }

 private:
  const host::HostMemory memory_;
  std::unique_ptr<Buffer> buffer_;
  int64_t floats_ = 0;
};

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_SCRATCH_H_
