// Bytes of a chunk against formulas written out by hand, and errors of Create.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/model/chunk.h"
#include "server/model/layer.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::model {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// Every size is a multiple of 64 bytes, so that formulas need no rounding.
constexpr int64_t kBatch = 2, kSeq = 16, kRows = kBatch * kSeq;
constexpr int64_t kWidth = 48, kFfn = 80, kVocab = 112, kHeads = 4;
constexpr int64_t kF32 = 4;

ModelConfig Gpt2(double dropout) {
  return {.family = Family::kGpt2,
          .layers = 4,
          .width = kWidth,
          .heads = kHeads,
          .kv_heads = kHeads,
          .head_dim = 12,
          .ffn_width = kFfn,
          .context = 32,
          .vocab = kVocab,
          .dropout = dropout};
}

ModelConfig Llama() {
  ModelConfig config = Gpt2(0);
  config.family = Family::kLlama;
  config.kv_heads = 2;
  config.head_dim = 16;  // q is 64 wide, k and v 32 each.
  return config;
}

ChunkMemory Memory(const ModelConfig& model, const LayerRange& range,
                   Recompute recompute = Recompute::kNone) {
  return Chunk::Predict({.model = model,
                         .range = range,
                         .shape = {.batch = kBatch, .seq = kSeq},
                         .recompute = recompute});
}

constexpr int64_t Row(int64_t columns) { return kRows * columns * kF32; }
constexpr int64_t kPosition = 64, kIds = kRows * 4, kLabels = kRows * 4;
constexpr int64_t kLogsum = kBatch * kHeads * kSeq * kF32;
// Norm, mean and rstd.
constexpr int64_t kGpt2Norm = Row(kWidth) + 2 * Row(1);
constexpr int64_t kGpt2Stash =
    // norm, qkv, attention's output, logsum, the stream between the halves
    kGpt2Norm + Row(3 * kWidth) + Row(kWidth) + kLogsum + Row(kWidth) +
    // norm, slope of GELU, its output
    kGpt2Norm + 2 * Row(kFfn);
// The gradients of two norms; of the stream between the halves, or of the
// branches.
constexpr int64_t kGpt2Kept = 2 * Row(kWidth) + Row(kWidth);
constexpr int64_t kHeadStash = kGpt2Norm + Row(kVocab) + Row(1);

TEST(ChunkMemoryTest, Gpt2BlocksHoldInputAndStash) {
  const ChunkMemory memory =
      Memory(Gpt2(0), {.first_block = 1, .end_block = 3});
  EXPECT_EQ(memory.slot, kPosition + 2 * (Row(kWidth) + kGpt2Stash));
  // Without dropout W reads the output gradient itself, which I must save.
  EXPECT_EQ(memory.held, 2 * (Row(kWidth) + kGpt2Kept));
  EXPECT_EQ(memory.workspace,
            // F and I of the wider half, one layer's kept, one gradient
            Row(kWidth) + Row(kFfn) + kGpt2Kept + Row(kWidth));
  EXPECT_EQ(memory.boundary, Row(kWidth));
  EXPECT_EQ(memory.constants, 0);
}

TEST(ChunkMemoryTest, DropoutKeepsTheBranchesGradients) {
  const ChunkMemory memory =
      Memory(Gpt2(0.1), {.first_block = 1, .end_block = 3});
  EXPECT_EQ(memory.slot, kPosition + 2 * (Row(kWidth) + kGpt2Stash));
  // Two branches' gradients in place of the one between the halves, and the
  // output gradient is not needed.
  const int64_t kept = kGpt2Kept + Row(kWidth);
  EXPECT_EQ(memory.held, 2 * kept);
  EXPECT_EQ(memory.workspace,
            Row(kWidth) + Row(kFfn) + Row(kWidth) + kept + Row(kWidth));
}

TEST(ChunkMemoryTest, TheEndsHoldIdsLabelsAndLogits) {
  const ChunkMemory embedding = Memory(Gpt2(0), {.embedding = true});
  EXPECT_EQ(embedding.slot, kPosition + kIds);
  EXPECT_EQ(embedding.held, Row(kWidth));
  EXPECT_EQ(embedding.workspace, 0);
  const ChunkMemory head =
      Memory(Gpt2(0), {.first_block = 4, .end_block = 4, .head = true});
  EXPECT_EQ(head.slot, kPosition + kLabels + Row(kWidth) + kHeadStash);
  EXPECT_EQ(head.held, Row(kWidth));
  EXPECT_EQ(head.workspace, Row(kWidth));
}

TEST(ChunkMemoryTest, RecomputeHoldsOnlyInputs) {
  const LayerRange range{.first_block = 2, .end_block = 4, .head = true};
  const ChunkMemory memory = Memory(Gpt2(0), range, Recompute::kFull);
  EXPECT_EQ(memory.slot, kPosition + kLabels + 3 * Row(kWidth));
  EXPECT_EQ(memory.held, 2 * (Row(kWidth) + kGpt2Kept + kGpt2Stash) +
                             Row(kWidth) + kHeadStash);
  EXPECT_EQ(memory.workspace, Row(kWidth) + Row(kFfn) + kGpt2Kept +
                                  2 * Row(kWidth) + kGpt2Stash + 2 * 64);
}

TEST(ChunkMemoryTest, LlamaHoldsGateAndUpAndHasTables) {
  const ChunkMemory memory =
      Memory(Llama(), {.first_block = 0, .end_block = 1});
  const int64_t norm = Row(kWidth) + Row(1);
  EXPECT_EQ(memory.slot,
            kPosition + Row(kWidth) +                  // input
                norm + Row(128) + Row(64) + kLogsum +  // attention
                Row(kWidth) + norm + Row(2 * kFfn) + Row(kFfn));
  EXPECT_EQ(memory.constants, 2 * kSeq * 8 * kF32);
}

struct BadRange {
  LayerRange range;
  const char* rule;
};

TEST(ChunkTest, RefusesImpossibleRangesAndShapes) {
  auto device = device::reference::CreateReferenceDevice();
  ASSERT_OK(device.status());
  ASSERT_OK_AND_ASSIGN(const auto stream, (*device)->CreateStream());
  const LayerRange whole{
      .embedding = true, .first_block = 0, .end_block = 4, .head = true};
  ASSERT_OK_AND_ASSIGN(
      const auto store,
      ParameterStore::Create(**device, {.model = Gpt2(0), .ranges = {whole}}));
  const auto create = [&](const LayerRange& range, const BatchShape& shape) {
    return Chunk::Create(**device, *stream, *store,
                         {.model = Gpt2(0), .range = range, .shape = shape},
                         absl::InfiniteFuture())
        .status();
  };
  const BatchShape shape{.batch = kBatch, .seq = kSeq};
  for (const BadRange& bad :
       {BadRange{{.first_block = 2, .end_block = 2}, "it is empty"},
        BadRange{{.first_block = 3, .end_block = 2}, "no such blocks"},
        BadRange{{.first_block = 0, .end_block = 5}, "no such blocks"},
        BadRange{{.embedding = true, .first_block = 1, .end_block = 2},
                 "followed by block 0"},
        BadRange{{.first_block = 1, .end_block = 2, .head = true},
                 "follows the last block"}}) {
    EXPECT_THAT(
        create(bad.range, shape),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.rule)));
  }
  EXPECT_THAT(
      create(whole, {.batch = 1, .seq = 33}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("context (32)")));
  EXPECT_THAT(create(whole, {.batch = 0, .seq = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(create(whole, shape));
}

TEST(ModelConfigTest, NamesTheFieldThatIsWrong) {
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_OK(Validate(Gpt2(0)));
  EXPECT_OK(Validate(Llama()));
  ModelConfig config = Gpt2(1.0);
  EXPECT_THAT(Validate(config), invalid("model.dropout is 1"));
  config = Gpt2(0);
  config.head_dim = 11;
  EXPECT_THAT(Validate(config), invalid("model.head_dim is 11"));
  config = Llama();
  config.kv_heads = 3;
  EXPECT_THAT(Validate(config), invalid("model.kv_heads is 3"));
  config = Llama();
  config.head_dim = 7;
  EXPECT_THAT(Validate(config), invalid("model.head_dim is 7"));
  config = Llama();
  config.rope_theta = 1e-37;
  EXPECT_THAT(Validate(config), invalid("model.rope_theta is"));
  config = Llama();
  config.rope_scaling.kind = RopeScalingKind::kLlama3;
  config.rope_scaling.high_freq_factor = 1;
  EXPECT_THAT(Validate(config), invalid("rope_scaling.high_freq_factor"));
  config = Gpt2(0);
  config.layers = kMaxLayers + 1;
  EXPECT_THAT(Validate(config), invalid("model.layers is 21846"));
  config = Gpt2(0);
  config.vocab = 0;
  EXPECT_THAT(Validate(config), invalid("model.vocab is 0"));
}

// The last site of the deepest model that is accepted is the last of the 16
// bits; the next block would have none.
TEST(ModelConfigTest, EverySiteOfTheDeepestModelHasItsNumber) {
  ModelConfig config = Gpt2(0);
  config.layers = kMaxLayers;
  EXPECT_OK(Validate(config));
  EXPECT_EQ(BlockDropoutSite(kMaxLayers - 1, DropoutSite::kMlpOutput), 65535);
}

}  // namespace
}  // namespace penstock::server::model
