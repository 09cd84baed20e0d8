// Bytes of a rank whose backward is split. (What a stage allocates and counts
// is compared in tests/integration/memory_prediction_test.cc and
// tests/server/executor/executor_memory_test.cc.)
#include "coordinator/planner/memory_model.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::planner {
namespace {

constexpr int kRanks = 4, kMicroBatches = 8;

MemoryRequest Request(Recompute recompute) {
  MemoryRequest request = {.model = {.family = Family::kGpt2,
                                     .layers = 4,
                                     .width = 16,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .head_dim = 8,
                                     .ffn_width = 64,
                                     .context = 8,
                                     .vocab = 32},
                           .batch = {.micro_batch = 2, .sequence_length = 8},
                           .micro_batches = kMicroBatches,
                           .recompute = recompute};
  for (int stage = 0; stage < kRanks; ++stage) {
    request.stages.push_back({.first_block = stage,
                              .end_block = stage + 1,
                              .embedding = stage == 0,
                              .head = stage + 1 == kRanks});
  }
  return request;
}

// Of zb-h1, where each W of rank r comes r Is late.
TEST(MemoryModelTest, ASplitBackwardHoldsItsSlotToWAndAHeldPlaceFromI) {
  ASSERT_OK_AND_ASSIGN(
      const schedule::Schedule order,
      schedule::Generate("zb-h1",
                         {.ranks = kRanks, .micro_batches = kMicroBatches}));
  ASSERT_OK_AND_ASSIGN(const schedule::LoweredProgram program,
                       schedule::Lower(order, {.tied_embedding = true}));
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const MemoryRequest request = Request(recompute);
    const std::vector<RankMemory> memory = PredictMemory(request, program);
    for (int r = 0; r < kRanks; ++r) {
      SCOPED_TRACE(absl::StrCat("rank ", r));
      const ChunkMemory chunk = PredictChunk(request.model, request.batch,
                                             request.stages[r], recompute);
      EXPECT_EQ(program.stages[r].held, r + 1);
      EXPECT_EQ(memory[r].activation_slots,
                program.stages[r].slots * chunk.slot + (r + 1) * chunk.held);
      EXPECT_EQ(memory[r].peak_in_flight, kRanks);
      EXPECT_EQ(memory[r].peak_activation_bytes,
                kRanks * chunk.slot + (r + 1) * chunk.held);
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::planner
