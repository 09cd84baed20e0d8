#include "server/model/hugging_face.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock::server::model {
namespace {

using nlohmann::json;

TEST(HuggingFaceConfigTest, Gpt2SaysWhatTransformersReads) {
  const json config = json::parse(HuggingFaceConfig({.family = Family::kGpt2,
                                                     .layers = 5,
                                                     .width = 36,
                                                     .heads = 3,
                                                     .kv_heads = 3,
                                                     .head_dim = 12,
                                                     .ffn_width = 100,
                                                     .context = 40,
                                                     .vocab = 251,
                                                     .tied = false,
                                                     .dropout = 0.1}));
  EXPECT_EQ(config["model_type"], "gpt2");
  EXPECT_EQ(config["architectures"], json({"GPT2LMHeadModel"}));
  EXPECT_EQ(config["n_layer"], 5);
  EXPECT_EQ(config["n_embd"], 36);
  EXPECT_EQ(config["n_head"], 3);
  EXPECT_EQ(config["n_inner"], 100);
  EXPECT_EQ(config["n_positions"], 40);
  EXPECT_EQ(config["vocab_size"], 251);
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["resid_pdrop"], 0.1);
  EXPECT_EQ(config["layer_norm_epsilon"], 1e-5);
  EXPECT_EQ(config["activation_function"], "gelu_new");
}

ModelConfig Llama() {
  return {.family = Family::kLlama,
          .layers = 6,
          .width = 64,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .ffn_width = 172,
          .context = 64,
          .vocab = 256,
          .tied = true,
          .norm_eps = 1e-6,
          .rope_theta = 500000};
}

TEST(HuggingFaceConfigTest, LlamaSaysRopeForBothMajorVersions) {
  const json config = json::parse(HuggingFaceConfig(Llama()));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["head_dim"], 16);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["rope_theta"], 500000);
  EXPECT_TRUE(config["rope_scaling"].is_null());
  EXPECT_EQ(config["rope_parameters"],
            json({{"rope_type", "default"}, {"rope_theta", 500000.0}}));
}

TEST(HuggingFaceConfigTest, Llama3ScalingIsComplete) {
  ModelConfig model = Llama();
  model.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                        .factor = 8,
                        .low_freq_factor = 1,
                        .high_freq_factor = 4,
                        .original_context = 32};
  const json config = json::parse(HuggingFaceConfig(model));
  json expected = {{"rope_type", "llama3"},
                   {"factor", 8.0},
                   {"low_freq_factor", 1.0},
                   {"high_freq_factor", 4.0},
                   {"original_max_position_embeddings", 32}};
  EXPECT_EQ(config["rope_scaling"], expected);
  expected["rope_theta"] = 500000.0;
  EXPECT_EQ(config["rope_parameters"], expected);
}

TEST(HuggingFaceConfigTest, NamesFollowTheFamily) {
  EXPECT_EQ(NamePrefix(Llama()), "model.");
  EXPECT_EQ(TokenEmbeddingName(Llama()), "model.embed_tokens.weight");
  ModelConfig gpt2 = Llama();
  gpt2.family = Family::kGpt2;
  EXPECT_EQ(NamePrefix(gpt2), "transformer.");
  EXPECT_EQ(TokenEmbeddingName(gpt2), "transformer.wte.weight");
}

}  // namespace
}  // namespace penstock::server::model
