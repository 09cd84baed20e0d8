#include "server/device/host/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"

namespace penstock::server::device::host {
namespace {

constexpr int64_t kAlignment = 64;

// 0xFF bytes are a NaN as f32, f64, bf16 and f16, and -1 as an integer.
#if PENSTOCK_FILL_NEW_BUFFERS
constexpr bool kFill = true;
#else
constexpr bool kFill = false;
#endif

// Immutable handle of memory from posix_memalign.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(void* data, int64_t bytes)
      : data_(static_cast<std::byte*>(data)), bytes_(bytes) {}
  ~HostBuffer() override { std::free(data_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::byte* const data_;
  const int64_t bytes_;
};

int64_t MachineBytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Buffer>> AllocateHostMemory(int64_t bytes) {
  CHECK_GE(bytes, 0);
  void* data = nullptr;
  if (bytes > MachineBytes() ||
      posix_memalign(&data, kAlignment, std::max<int64_t>(bytes, 1)) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes,
                     " bytes; the machine has ", MachineBytes()));
  }
  if (kFill) std::memset(data, 0xFF, bytes);
  return std::make_unique<HostBuffer>(data, bytes);
}

}  // namespace penstock::server::device::host
