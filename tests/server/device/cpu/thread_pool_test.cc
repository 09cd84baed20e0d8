#include "server/device/cpu/thread_pool.h"

#include <pthread.h>
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
#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/compute_thread.h"
#include "server/device/cpu/factory.h"
#include "server/device/float_mode.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device::cpu {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTasks[] = "/proc/self/task";

TEST(ThreadPoolTest, RunsEveryBlockOnce) {
  for (const int threads : {1, 2, 5}) {
    ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(threads));
    EXPECT_EQ(pool->threads(), threads);
    for (const int64_t blocks : {0, 1, 2, 3, 100}) {
      std::vector<int> runs(blocks, 0);  // Each element has one writer.
      pool->Run(blocks, [&](int64_t block, int thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++runs[block];
      });
      EXPECT_THAT(runs, ::testing::Each(1));
    }
  }
}

TEST(ThreadPoolTest, ManyShortRuns) {
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(3));
  std::vector<int64_t> sums(2, 0);
  for (int i = 0; i < 2000; ++i) {
    pool->Run(2, [&](int64_t block, int) { sums[block] += block + 1; });
  }
  EXPECT_THAT(sums, ::testing::ElementsAre(2000, 4000));
}

// While one lives, the system grants no thread: each asks for a stack that no
// address space holds.
class NoThreads {
 public:
  NoThreads() {
    CHECK_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    CHECK_EQ(pthread_attr_init(&huge), 0);
    CHECK_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
    CHECK_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    CHECK_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(ThreadPoolTest, ThreadsThatTheSystemRefusesAreNamed) {
  {
    const NoThreads none;
    EXPECT_THAT(ThreadPool::Create(3),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("of 3 compute threads there are 1"),
                               HasSubstr("lower threads_per_stage"),
                               HasSubstr("refuses another thread"))));
    EXPECT_THAT(CreateCpuDevice({.threads = 2}),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_THAT(ThreadPool::Create(3), IsOk());
}

TEST(ThreadPoolTest, WorkersFlushDenormals) {
  SetFlushDenormals();  // This thread takes blocks too.
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(4));
  const volatile float tiny = 1e-20f, denormal = 1e-40f;
  // Bits: to this thread a denormal equals zero.
  std::vector<uint32_t> results(64, 1), operands(64, 1);
  pool->Run(64, [&](int64_t block, int) {
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
  ASSERT_OK_AND_ASSIGN(const auto pool, ThreadPool::Create(4));
  pool->Run(2, [](int64_t, int) {});  // All workers have started.
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
