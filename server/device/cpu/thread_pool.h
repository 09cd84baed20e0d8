// Threads that share out the blocks of an op.
//
// The caller is one of them. Which thread takes which block is left to chance;
// results must not depend on it: a block's result is a function of the block.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_THREAD_POOL_H_
#define PENSTOCK_SERVER_DEVICE_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sync/mutex.h"

namespace penstock::server::device::cpu {

// Thread-compatible: one Run at a time.
class ThreadPool {
 public:
  // A block's number, and the number in [0, threads()) of who runs it.
  using Work = std::function<void(int64_t block, int thread)>;

  // `threads` counts the caller of Run. Workers have denormals flushed
  // and are compute threads (compute_thread.h); what the caller is, it decides.
  // ResourceExhausted, reason OUT_OF_MEMORY, says how many the system granted.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Create(int threads);
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs work(0) .. work(blocks - 1), each once, and returns when all are done.
  void Run(int64_t blocks, const Work& work);

 private:
  ThreadPool() = default;

  void Worker(int thread);
  void TakeBlocks(const Work& work, int64_t blocks, int thread);

  std::atomic<int64_t> next_{0};

  common::sync::Mutex mutex_;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;  // Counts the calls of Run.
  int64_t busy_ ABSL_GUARDED_BY(mutex_) = 0;   // Workers not done with it.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> workers_;
};

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_THREAD_POOL_H_
