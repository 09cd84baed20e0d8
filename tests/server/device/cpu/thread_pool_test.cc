#include "server/device/cpu/thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/compute_thread.h"
#include "server/device/float_mode.h"

namespace penstock::server::device::cpu {
namespace {

constexpr char kTasks[] = "/proc/self/task";

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
  const volatile float tiny = 1e-20f, denormal = 1e-40f;
  // Bits: to this thread a denormal equals zero.
  std::vector<uint32_t> results(64, 1), operands(64, 1);
  pool.Run(64, [&](int64_t block, int) {
    results[block] = std::bit_cast<uint32_t>(tiny * tiny);
    operands[block] = std::bit_cast<uint32_t>(denormal * 1e30f);
  });
  EXPECT_THAT(results, ::testing::Each(0));
  EXPECT_THAT(operands, ::testing::Each(0));
}

// Of each thread of this process, by its id, as the kernel tells.
std::map<std::string, int> NiceOfThreads() {
  std::map<std::string, int> nice;
  for (const auto& task : std::filesystem::directory_iterator(kTasks)) {
    std::stringstream stat;
    stat << std::ifstream(task.path() / "stat").rdbuf();
    const std::string text = stat.str();
    // proc(5): the name, which ends in the last ')', is field 2; nice is 19.
    const std::vector<std::string> fields =
        absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
    EXPECT_TRUE(absl::SimpleAtoi(fields.at(16), &nice[task.path().filename()]));
  }
  return nice;
}

TEST(ThreadPoolTest, WorkersAreNicerThanTheProcess) {
  const std::string main = std::to_string(getpid());
  const int process = NiceOfThreads()[main];
  const auto before = NiceOfThreads();
  ThreadPool pool(4);
  pool.Run(2, [](int64_t, int) {});  // All workers have started.
  std::vector<int> workers;
  for (const auto& [id, nice] : NiceOfThreads()) {
    if (before.count(id) == 0) workers.push_back(nice);
  }
  const int nicer = std::min(19, process + kComputeNice);
  EXPECT_THAT(workers, ::testing::ElementsAre(nicer, nicer, nicer));
  EXPECT_EQ(NiceOfThreads()[main], process);
}

}  // namespace
}  // namespace penstock::server::device::cpu
