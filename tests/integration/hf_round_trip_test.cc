// The config.json that stages write is one that the coordinator reads, as the
// same model.
#include "coordinator/spec/hf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/hugging_face.h"
#include "server/model/model_config.h"

namespace penstock {
namespace {

using coordinator::spec::HfConfig;
using coordinator::spec::ReadHfConfig;
using server::model::ModelConfig;
using server::model::RopeScalingKind;

ModelConfig Llama(RopeScalingKind scaling) {
  return {.family = server::model::Family::kLlama,
          .layers = 6,
          .width = 64,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 18,
          .ffn_width = 172,
          .context = 64,
          .vocab = 256,
          .tied = true,
          .norm_eps = 1e-6,
          .rope_theta = 500000,
          .rope_scaling = {.kind = scaling,
                           .factor = 8,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4,
                           .original_context = 32}};
}

TEST(HfRoundTripTest, EachKindOfRopeScalingIsReadAsItWasWritten) {
  for (const auto& [kind, read_kind] :
       {std::pair{RopeScalingKind::kNone,
                  coordinator::spec::RopeScalingKind::kNone},
        std::pair{RopeScalingKind::kLinear,
                  coordinator::spec::RopeScalingKind::kLinear},
        std::pair{RopeScalingKind::kLlama3,
                  coordinator::spec::RopeScalingKind::kLlama3}}) {
    const HfConfig read =
        ReadHfConfig(server::model::HuggingFaceConfig(Llama(kind)));
    ASSERT_THAT(read.errors, testing::IsEmpty());
    EXPECT_EQ(read.model.head_dim, 18);
    EXPECT_EQ(read.model.kv_heads, 2);
    EXPECT_EQ(read.model.rope_theta, 500000);
    EXPECT_TRUE(read.model.tied_embeddings);
    EXPECT_EQ(read.model.rope_scaling.kind, read_kind);
    if (kind == RopeScalingKind::kNone) continue;
    EXPECT_EQ(read.model.rope_scaling.factor, 8);
    if (kind == RopeScalingKind::kLinear) continue;
    EXPECT_EQ(read.model.rope_scaling.low_freq_factor, 1);
    EXPECT_EQ(read.model.rope_scaling.high_freq_factor, 4);
    EXPECT_EQ(read.model.rope_scaling.original_context, 32);
  }
}

TEST(HfRoundTripTest, Gpt2IsReadAsItWasWritten) {
  ModelConfig gpt2 = Llama(RopeScalingKind::kNone);
  gpt2.family = server::model::Family::kGpt2;
  gpt2.kv_heads = 4;
  gpt2.head_dim = 16;
  const HfConfig read = ReadHfConfig(server::model::HuggingFaceConfig(gpt2));
  ASSERT_THAT(read.errors, testing::IsEmpty());
  EXPECT_EQ(read.model.layers, 6);
  EXPECT_EQ(read.model.ffn_width, 172);
  EXPECT_EQ(read.model.context, 64);
}

}  // namespace
}  // namespace penstock
