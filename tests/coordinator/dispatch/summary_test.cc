#include "coordinator/dispatch/summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

TEST(SummaryTest, ShardsAreNamedAsHuggingFaceDoes) {
  EXPECT_EQ(ShardFile(0, 1), "model.safetensors");
  EXPECT_EQ(ShardFile(0, 4), "model-00001-of-00004.safetensors");
  EXPECT_EQ(ShardFile(11, 12), "model-00012-of-00012.safetensors");
}

TEST(SummaryTest, TheIndexIsThatOfSavePretrained) {
  std::vector<v1::EndReport> ends(2);
  ends[0].set_shard_file(ShardFile(0, 2));
  ends[0].add_shard_tensors("transformer.wte.weight");
  ends[1].set_shard_file(ShardFile(1, 2));
  ends[1].add_shard_tensors("transformer.ln_f.weight");
  ends[1].add_shard_tensors("transformer.h.0.ln_1.weight");
  EXPECT_EQ(ShardIndex(ends, 40), R"({
  "metadata": {
    "total_size": 40
  },
  "weight_map": {
    "transformer.h.0.ln_1.weight": "model-00002-of-00002.safetensors",
    "transformer.ln_f.weight": "model-00002-of-00002.safetensors",
    "transformer.wte.weight": "model-00001-of-00002.safetensors"
  }
}
)");
}

TEST(SummaryTest, AllOfARanksMemoryIsCountedOnce) {
  v1::MemoryBytes memory;
  memory.set_parameters(1);
  memory.set_gradients(20);
  memory.set_optimizer(300);
  memory.set_activation_slots(4000);
  memory.set_workspace(50000);
  memory.set_transfer_slots(600000);
  EXPECT_EQ(TotalBytes(memory), 654321);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
