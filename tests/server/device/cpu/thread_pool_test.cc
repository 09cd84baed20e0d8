#include "server/device/cpu/thread_pool.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/float_mode.h"

namespace penstock::server::device::cpu {
namespace {

TEST(ThreadPoolTest, RunsEveryBlockOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t blocks : {0, 1, 2, 3, 100}) {
      std::vector<int> runs(blocks, 0);  // Each element has one writer.
      pool.Run(blocks, [&](int64_t block, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++runs[block];
      });
      EXPECT_THAT(runs, ::testing::Each(1));
    }
  }
}

TEST(ThreadPoolTest, ManyShortRuns) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(2, 0);
  for (int i = 0; i < 2000; ++i) {
    pool.Run(2, [&](int64_t block, int) { sums[block] += block + 1; });
  }
  EXPECT_THAT(sums, ::testing::ElementsAre(2000, 4000));
}

TEST(ThreadPoolTest, WorkersFlushDenormals) {
  SetFlushDenormals();  // This thread takes blocks too.
  ThreadPool pool(4);
  std::vector<int> flushes(64, 0);
  pool.Run(64,
           [&](int64_t block, int) { flushes[block] = FlushesDenormals(); });
  EXPECT_THAT(flushes, ::testing::Each(1));
}

}  // namespace
}  // namespace penstock::server::device::cpu
