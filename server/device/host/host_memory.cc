#include "server/device/host/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/sync/mutex.h"
#include "server/device/host/memory_limit.h"

namespace penstock::server::device::host {
namespace {

using common::sync::MutexLock;

constexpr int64_t kAlignment = 64;

// 0xFF bytes are a NaN as f32, f64, bf16 and f16, and -1 as an integer.
#if PENSTOCK_FILL_NEW_BUFFERS
constexpr bool kFill = true;
#else
constexpr bool kFill = false;
#endif

}  // namespace

// Thread-safe.
class HostMemory::Counter {
 public:
  void Add(MemoryUse use, int64_t bytes) {
    MutexLock lock(&mutex_);
    MemoryCount& count = usage_.of(use);
    count.bytes += bytes;
    count.peak_bytes = std::max(count.peak_bytes, count.bytes);
    ++count.allocations;
  }
  void Remove(MemoryUse use, int64_t bytes) {
    MutexLock lock(&mutex_);
    usage_.of(use).bytes -= bytes;
  }
  MemoryUsage usage() const {
    MutexLock lock(&mutex_);
    return usage_;
  }

 private:
  mutable common::sync::Mutex mutex_;
  MemoryUsage usage_ ABSL_GUARDED_BY(mutex_);
};

// Immutable handle of memory from posix_memalign.
class HostMemory::CountedBuffer final : public Buffer {
 public:
  CountedBuffer(void* data, int64_t bytes, MemoryUse use,
                std::shared_ptr<Counter> counter)
      : data_(static_cast<std::byte*>(data)),
        bytes_(bytes),
        use_(use),
        counter_(std::move(counter)) {
    counter_->Add(use_, bytes_);
  }
  ~CountedBuffer() override {
    std::free(data_);
    counter_->Remove(use_, bytes_);
  }
  CountedBuffer(const CountedBuffer&) = delete;
  CountedBuffer& operator=(const CountedBuffer&) = delete;

  std::byte* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  std::byte* const data_;
  const int64_t bytes_;
  const MemoryUse use_;
  const std::shared_ptr<Counter> counter_;
};

HostMemory::HostMemory()
    : limit_(FindMemoryLimit().bytes), counter_(std::make_shared<Counter>()) {}

absl::StatusOr<std::unique_ptr<Buffer>> HostMemory::Allocate(
    int64_t bytes, MemoryUse use) const {
  CHECK_GE(bytes, 0);
  void* data = nullptr;
  if (bytes > limit_ ||
      posix_memalign(&data, kAlignment, std::max<int64_t>(bytes, 1)) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes,
                     " bytes; this process may have ", limit_));
  }
  if (kFill) std::memset(data, 0xFF, bytes);
  return std::make_unique<CountedBuffer>(data, bytes, use, counter_);
}

MemoryUsage HostMemory::usage() const { return counter_->usage(); }

}  // namespace penstock::server::device::host
