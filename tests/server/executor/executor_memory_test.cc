// What an executor uses of memory and of the processor.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/compute_thread.h"
#include "server/device/cpu/factory.h"
#include "server/executor/executor.h"
#include "server/executor/measured_memory.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/lower_order.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using penstock::testing::LowerNamed;
using penstock::testing::LowerOrder;
using penstock::testing::MadeUpData;
using penstock::testing::Pipeline;
using penstock::testing::TinyModel;

Pipeline::Options Options(const std::string& schedule, int ranks,
                          int micro_batches) {
  return {
      .program = LowerNamed(
          {.name = schedule, .ranks = ranks, .micro_batches = micro_batches}),
      .assignment = {.model = TinyModel()}};
}

class MemoryTest
    : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(MemoryTest, MeasuredIsWhatWasPredicted) {
  const std::string schedule = std::get<0>(GetParam());
  const bool recompute = std::get<1>(GetParam());
  constexpr int kMicroBatches = 6;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    Pipeline::Options options = Options(schedule, ranks, kMicroBatches);
    options.assignment.full_recompute = recompute;
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Pipeline::Create(std::move(options)));
    ASSERT_OK_AND_ASSIGN(const auto steps, pipeline->Train(2));
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank, " of ", ranks));
      const StageAssignment& assignment = pipeline->assignment(rank);
      const int in_flight = schedule == "gpipe" ? kMicroBatches
                            : schedule == "naive"
                                ? 1
                                : std::min(ranks - rank, kMicroBatches);
      const int64_t slot =
          model::Chunk::Predict(assignment.chunk_options(0)).slot;
      for (const Pipeline::Step& step : steps) {
        EXPECT_EQ(step.reports[rank].peak_in_flight(), in_flight);
        EXPECT_EQ(step.reports[rank].peak_activation_bytes(), in_flight * slot);
      }
      const v1::MemoryBytes bytes =
          Executor::PredictMemory(pipeline->device(rank).ops(), assignment);
      EXPECT_EQ(PeakMemory(pipeline->device(rank).memory()).DebugString(),
                bytes.DebugString());
      EXPECT_EQ(bytes.activation_slots(), assignment.chunks[0].slots * slot);
      EXPECT_EQ(pipeline->executor(rank).status().activation_bytes, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, MemoryTest,
                         ::testing::Combine(::testing::Values("naive", "gpipe",
                                                              "1f1b"),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_recompute" : "");
                         });

// What a split backward holds from I to W is counted, and given back at W.
TEST(SplitMemoryTest, MeasuredIsWhatWasPredicted) {
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute);
    ASSERT_OK_AND_ASSIGN(
        const auto pipeline,
        Pipeline::Create(
            {.program = LowerOrder("0F0,0F1,0I1,0I0,0W0,0F2,0I2,0W1,0W2\n",
                                   {.micro_batches = 3}),
             .assignment = {.model = TinyModel(),
                            .full_recompute = recompute}}));
    ASSERT_OK_AND_ASSIGN(const auto steps, pipeline->Train(2));
    const StageAssignment& assignment = pipeline->assignment(0);
    const model::ChunkMemory chunk =
        model::Chunk::Predict(assignment.chunk_options(0));
    const v1::MemoryBytes bytes =
        Executor::PredictMemory(pipeline->device(0).ops(), assignment);
    EXPECT_EQ(PeakMemory(pipeline->device(0).memory()).DebugString(),
              bytes.DebugString());
    EXPECT_EQ(bytes.activation_slots(),
              assignment.chunks[0].slots * chunk.slot + 2 * chunk.held);
    for (const Pipeline::Step& step : steps) {
      EXPECT_EQ(step.reports[0].peak_in_flight(), 2);
      EXPECT_EQ(step.reports[0].peak_activation_bytes(),
                2 * (chunk.slot + chunk.held));
    }
    EXPECT_EQ(pipeline->executor(0).status().activation_bytes, 0);
  }
}

// Says how nice the thread is that reads the data: the engine.
class NiceSource final : public MicroBatchSource {
 public:
  explicit NiceSource(std::atomic<int>& nice) : nice_(nice) {}
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override {
    nice_ = getpriority(PRIO_PROCESS, gettid());
    return data_.Read(split, first, ids, labels);
  }

 private:
  std::atomic<int>& nice_;
  MadeUpData data_{8, 19};
};

TEST(ExecutorTest, TheEngineIsNicerThanTheProcess) {
  const int process = getpriority(PRIO_PROCESS, getpid());
  std::atomic<int> engine{-100};
  Pipeline::Options options = Options("1f1b", 1, 2);
  options.data = [&](int) { return std::make_unique<NiceSource>(engine); };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  ASSERT_OK(pipeline->Train(1).status());
  EXPECT_EQ(engine, std::min(19, process + device::kComputeNice));
  EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), process);
}

TEST(ExecutorTest, StepsAllocateNothing) {
  for (const auto isa : device::cpu::SupportedIsas()) {
    Pipeline::Options options = Options("1f1b", 3, 4);
    options.assignment.model.dropout = 0.1;
    options.device = [isa](int) {
      auto device =
          device::cpu::CreateCpuDevice({.threads = 2, .max_isa = isa});
      return device.ok() ? *std::move(device) : nullptr;
    };
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Pipeline::Create(std::move(options)));
    std::vector<device::MemoryUsage> assembled;
    for (int rank = 0; rank < 3; ++rank) {
      assembled.push_back(pipeline->device(rank).memory());
    }
    ASSERT_OK(pipeline->Train(2).status());
    ASSERT_OK(pipeline->Evaluate(3).status());
    ASSERT_OK(pipeline->End().status());
    for (int rank = 0; rank < 3; ++rank) {
      SCOPED_TRACE(absl::StrCat(device::cpu::Name(isa), ", rank ", rank));
      EXPECT_TRUE(pipeline->device(rank).memory() == assembled[rank])
          << PeakMemory(pipeline->device(rank).memory()).DebugString()
          << "instead of\n"
          << PeakMemory(assembled[rank]).DebugString();
      EXPECT_EQ(PeakMemory(assembled[rank]).DebugString(),
                Executor::PredictMemory(pipeline->device(rank).ops(),
                                        pipeline->assignment(rank))
                    .DebugString());
    }
  }
}

}  // namespace
}  // namespace penstock::server::executor
