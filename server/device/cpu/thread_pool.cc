#include "server/device/cpu/thread_pool.h"

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/sync/thread.h"
#include "server/device/compute_thread.h"
#include "server/device/float_mode.h"

namespace penstock::server::device::cpu {

using common::sync::MutexLock;

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(int threads) {
  CHECK_GE(threads, 1);
  std::unique_ptr<ThreadPool> pool(new ThreadPool());
  for (int thread = 1; thread < threads; ++thread) {
    absl::StatusOr<std::thread> worker = common::sync::StartThread(
        [pool = pool.get(), thread] { pool->Worker(thread); });
    if (!worker.ok()) {
      return common::status::Annotate(
          worker.status(),
          absl::StrCat("of ", threads, " compute threads there are ", thread,
                       "; lower threads_per_stage in the job file, or "
                       "--threads of the stage daemon"));
    }
    pool->workers_.push_back(*std::move(worker));
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t blocks, const Work& work) {
  if (workers_.empty() || blocks <= 1) {
    for (int64_t block = 0; block < blocks; ++block) work(block, 0);
    return;
  }
  {
    MutexLock lock(&mutex_);
    work_ = &work;
    blocks_ = blocks;
    busy_ = static_cast<int64_t>(workers_.size());
    next_.store(0, std::memory_order_relaxed);
    ++round_;
  }
  TakeBlocks(work, blocks, 0);
  MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return busy_ == 0;
  };
  mutex_.Await(absl::Condition(&done));
  work_ = nullptr;
}

void ThreadPool::TakeBlocks(const Work& work, int64_t blocks, int thread) {
  while (true) {
    const int64_t block = next_.fetch_add(1, std::memory_order_relaxed);
    if (block >= blocks) return;
    work(block, thread);
  }
}

void ThreadPool::Worker(int thread) {
  BecomeComputeThread();
  SetFlushDenormals();
  int64_t seen = 0;
  while (true) {
    const Work* work = nullptr;
    int64_t blocks = 0;
    {
      MutexLock lock(&mutex_);
      const auto ready = [this, seen]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || round_ != seen;
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      seen = round_;
      work = work_;
      blocks = blocks_;
    }
    TakeBlocks(*work, blocks, thread);
    MutexLock lock(&mutex_);
    --busy_;
  }
}

}  // namespace penstock::server::device::cpu
