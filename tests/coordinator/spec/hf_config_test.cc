#include "coordinator/spec/hf_config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Json = nlohmann::json;

std::string Read(const std::string& name) {
  std::ifstream file(std::filesystem::path(std::getenv("PENSTOCK_TEST_DATA")) /
                         "hf_configs" / (name + ".json"),
                     std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// `name`'s config with `key` set to the JSON `value`.
HfConfig With(const std::string& name, const char* key, const char* value) {
  Json json = Json::parse(Read(name));
  json[key] = Json::parse(value);
  return ReadHfConfig(json.dump());
}

TEST(HfConfigTest, ReadsGpt2AsTransformersWritesIt) {
  const HfConfig config = ReadHfConfig(Read("gpt2_untied_odd"));
  EXPECT_THAT(config.errors, IsEmpty());
  const ModelSpec expected = {.family = ModelFamily::kGpt2,
                              .layers = 5,
                              .width = 36,
                              .heads = 3,
                              .kv_heads = 3,
                              .head_dim = 12,
                              .ffn_width = 100,
                              .context = 40,
                              .vocab = 251,
                              .tied_embeddings = false,
                              .norm_eps = 1e-5,
                              .init_std = 0.02};
  EXPECT_TRUE(config.model == expected);
}

TEST(HfConfigTest, NullInnerWidthOfGpt2IsFourTimesTheWidth) {
  const HfConfig config = ReadHfConfig(Read("gpt2_tiny"));
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.model.ffn_width, 256);
  EXPECT_TRUE(config.model.tied_embeddings);
}

TEST(HfConfigTest, ReadsLlamaAsTransformers5WritesIt) {
  const HfConfig config = ReadHfConfig(Read("llama_tied"));
  EXPECT_THAT(config.errors, IsEmpty());
  const ModelSpec expected = {.family = ModelFamily::kLlama,
                              .layers = 4,
                              .width = 40,
                              .heads = 5,
                              .kv_heads = 1,
                              .head_dim = 8,
                              .ffn_width = 96,
                              .context = 64,
                              .vocab = 199,
                              .tied_embeddings = true,
                              .norm_eps = 1e-6,
                              .rope_theta = 500000,
                              .init_std = 0.02};
  EXPECT_TRUE(config.model == expected);
}

TEST(HfConfigTest, ReadsLlamaAsTransformers4WritesIt) {
  // Llama 3.1 8B's own config.json.
  const HfConfig config = ReadHfConfig(Read("llama31_transformers4"));
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.model.head_dim, 128);
  EXPECT_EQ(config.model.kv_heads, 8);
  EXPECT_EQ(config.model.rope_theta, 500000);
  const RopeScaling expected = {.kind = RopeScalingKind::kLlama3,
                                .factor = 8,
                                .low_freq_factor = 1,
                                .high_freq_factor = 4,
                                .original_context = 8192};
  EXPECT_TRUE(config.model.rope_scaling == expected);
  EXPECT_FALSE(config.model.tied_embeddings);
}

TEST(HfConfigTest, BothFormsOfLinearScalingAreOne) {
  const HfConfig old_form = With("llama31_transformers4", "rope_scaling",
                                 R"({"type": "linear", "factor": 2.0})");
  Json json = Json::parse(Read("llama31_transformers4"));
  json.erase("rope_scaling");
  json.erase("rope_theta");
  json["rope_parameters"] = Json::parse(
      R"({"rope_type": "linear", "factor": 2, "rope_theta": 500000.0})");
  const HfConfig new_form = ReadHfConfig(json.dump());
  EXPECT_THAT(old_form.errors, IsEmpty());
  EXPECT_THAT(new_form.errors, IsEmpty());
  EXPECT_TRUE(old_form.model == new_form.model);
  EXPECT_EQ(old_form.model.rope_scaling.kind, RopeScalingKind::kLinear);
}

TEST(HfConfigTest, BothFormsTogetherMustAgree) {
  Json json = Json::parse(Read("llama31_transformers4"));
  json["rope_parameters"] = json["rope_scaling"];
  json["rope_parameters"]["rope_theta"] = json["rope_theta"];
  EXPECT_THAT(ReadHfConfig(json.dump()).errors, IsEmpty());
  EXPECT_TRUE(ReadHfConfig(json.dump()).model ==
              ReadHfConfig(Read("llama31_transformers4")).model);
  json["rope_parameters"]["factor"] = 16;
  EXPECT_THAT(ReadHfConfig(json.dump()).errors,
              ElementsAre(HasSubstr("differs from rope_parameters")));
}

TEST(HfConfigTest, HeadDimNeedNotBeWidthOverHeads) {
  const HfConfig config = With("llama_gqa", "head_dim", "10");
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.model.head_dim, 10);
  EXPECT_THAT(With("llama_gqa", "head_dim", "9").errors,
              ElementsAre("head_dim: is 9, must be even for rotary positions"));
}

TEST(HfConfigTest, WithoutHeadDimTheHeadsMustDivideTheWidth) {
  Json json = Json::parse(Read("llama_gqa"));
  json["head_dim"] = nullptr;
  json["num_attention_heads"] = 6;
  EXPECT_THAT(ReadHfConfig(json.dump()).errors,
              ElementsAre("num_attention_heads: 6 heads do not divide "
                          "hidden_size, 64, and there is no head_dim"));
}

TEST(HfConfigTest, DropoutAndUnknownKeysAreIgnored) {
  EXPECT_THAT(With("gpt2_tiny", "resid_pdrop", "0.5").errors, IsEmpty());
  EXPECT_EQ(With("gpt2_tiny", "resid_pdrop", "0.5").model.dropout, 0.0);
  EXPECT_THAT(With("gpt2_tiny", "resid_pdrop", "0.5").ignored_dropout,
              ElementsAre("resid_pdrop 0.5"));
  EXPECT_THAT(With("gpt2_tiny", "resid_pdrop", "0.0").ignored_dropout,
              IsEmpty());
  EXPECT_THAT(With("gpt2_tiny", "resid_pdrop", "\"much\"").ignored_dropout,
              IsEmpty());
  EXPECT_THAT(With("gpt2_tiny", "some_new_key", "{\"a\": 1}").errors,
              IsEmpty());
}

struct Refused {
  const char* name;
  const char* key;
  const char* value;
  const char* error;
};

TEST(HfConfigTest, KeysThatChangeTheMathematicsAreRefused) {
  const Refused cases[] = {
      {"gpt2_tiny", "activation_function", "\"relu\"",
       "activation_function: is \"relu\", must be \"gelu_new\"; GELU-tanh is "
       "built"},
      {"gpt2_tiny", "activation_function", "\"gelu\"", "must be \"gelu_new\""},
      {"gpt2_tiny", "scale_attn_by_inverse_layer_idx", "true", "must be false"},
      {"gpt2_tiny", "scale_attn_weights", "false", "must be true"},
      {"gpt2_tiny", "add_cross_attention", "true", "must be false"},
      {"gpt2_tiny", "architectures", "[\"GPT2ForSequenceClassification\"]",
       "must be [\"GPT2LMHeadModel\"]"},
      {"gpt2_tiny", "quantization_config", "{\"bits\": 4}",
       "must be absent or null"},
      {"gpt2_tiny", "n_ctx", "32",
       "n_ctx: is 32, must be absent or 64, as the model's other sizes have "
       "it"},
      {"gpt2_tiny", "head_dim", "8", "must be absent or 16"},
      {"gpt2_tiny", "head_dim", "\"16\"", "must be absent or 16"},
      {"gpt2_tiny", "hidden_size", "128", "must be absent or 64"},
      {"gpt2_tiny", "num_key_value_heads", "1", "must be absent or 4"},
      {"gpt2_tiny", "mup_width_scale", "0.5",
       "mup_width_scale: is 0.5, must be absent or null; muP's multipliers"},
      {"gpt2_tiny", "multi_query", "true", "must be false"},
      {"gpt2_tiny", "position_embedding_type", "\"alibi\"",
       "must be \"absolute\""},
      {"llama_gqa", "clip_qkv", "8.0",
       "clip_qkv: is 8.0, must be absent or null; clipped queries, keys and "
       "values are not built"},
      {"llama_gqa", "mup_embeddings_scale", "12", "must be absent or null"},
      {"llama_gqa", "rope_interleaved", "true", "must be false"},
      {"llama_gqa", "lm_head_bias", "true", "must be false"},
      {"gpt2_tiny", "n_head", "5", "5 heads do not divide n_embd, 64"},
      {"gpt2_tiny", "n_embd", "\"64\"", "must be a whole number from 1"},
      {"gpt2_tiny", "n_layer", "null", "n_layer: is required"},
      {"gpt2_tiny", "vocab_size", "18446744073709551615",
       "must be a whole number from 1"},
      {"gpt2_tiny", "layer_norm_epsilon", "0", "must be above 0"},
      {"gpt2_tiny", "layer_norm_epsilon", "1e-60", "stages compute in f32"},
      {"gpt2_tiny", "tie_word_embeddings", "1", "must be true or false"},
      {"gpt2_tiny", "model_type", "\"mistral\"",
       "model_type: is \"mistral\", must be \"gpt2\" or \"llama\""},
      {"llama_gqa", "hidden_act", "\"gelu\"", "must be \"silu\""},
      {"llama_gqa", "attention_bias", "true", "must be false"},
      {"llama_gqa", "mlp_bias", "true", "must be false"},
      {"llama_gqa", "pretraining_tp", "2", "must be 1"},
      {"llama_gqa", "sliding_window", "128", "must be absent or null"},
      {"llama_gqa", "partial_rotary_factor", "0.5", "must be 1"},
      {"llama_gqa", "num_key_value_heads", "3",
       "3 do not divide num_attention_heads, 4"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "yarn", "factor": 4, "rope_theta": 1e4})",
       "rope_parameters.rope_type: is \"yarn\", must be default, linear or "
       "llama3"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "linear", "rope_theta": 1e4})",
       "rope_parameters.factor: is required"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "linear", "factor": 0.5})", "must be at least 1"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "default", "attention_factor": 2})",
       "rope_parameters.\"attention_factor\": unknown"},
      {"llama_gqa", "rope_parameters", "[1]", "must be an object or null"},
      {"llama_gqa", "rope_scaling", R"({"rope_type": "linear", "factor": 2})",
       "rope_scaling: differs from rope_parameters"},
      {"llama_gqa", "rope_theta", "5.0", "the outer rope_theta is 5"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "default", "rope_theta": 0.5})",
       "rope_parameters.rope_theta: is 0.5, must be at least 1"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "default", "rope_theta": 1e-300})",
       "rope_parameters.rope_theta: is 1e-300; stages compute in f32"},
      {"llama_gqa", "rope_parameters",
       R"({"rope_type": "linear", "factor": 1e300, "rope_theta": 1e4})",
       "rope_parameters.factor: is 1e+300; stages compute in f32"},
  };
  for (const Refused& c : cases) {
    EXPECT_THAT(With(c.name, c.key, c.value).errors,
                ElementsAre(HasSubstr(c.error)))
        << c.key << " " << c.value;
  }
}

TEST(HfConfigTest, AnotherWordForASizeMayAgree) {
  for (const auto& [key, value] :
       {std::pair("n_ctx", "64"), std::pair("n_ctx", "null"),
        std::pair("head_dim", "16"), std::pair("hidden_size", "64"),
        std::pair("num_attention_heads", "4"), std::pair("clip_qkv", "null"),
        std::pair("mup_width_scale", "null")}) {
    EXPECT_THAT(With("gpt2_tiny", key, value).errors, IsEmpty()) << key;
  }
}

TEST(HfConfigTest, AllErrorsComeAtOnce) {
  Json json = Json::parse(Read("llama_gqa"));
  json["mlp_bias"] = true;
  json["hidden_size"] = 0;
  json.erase("vocab_size");
  EXPECT_THAT(
      ReadHfConfig(json.dump()).errors,
      UnorderedElementsAre(HasSubstr("hidden_size: is 0"),
                           "vocab_size: is required", HasSubstr("mlp_bias")));
}

TEST(HfConfigTest, WhatIsNoJsonObjectIsNamedWithItsPlace) {
  EXPECT_THAT(ReadHfConfig("{\n  \"a\": }").errors,
              ElementsAre("line 2, column 8: not valid JSON"));
  EXPECT_THAT(ReadHfConfig("").errors,
              ElementsAre(HasSubstr("not valid JSON")));
  EXPECT_THAT(ReadHfConfig("[]").errors,
              ElementsAre("the file is no JSON object"));
  EXPECT_THAT(ReadHfConfig("{\"a\": 1e999}").errors,
              ElementsAre("a number in the file is out of range"));
  EXPECT_THAT(ReadHfConfig(std::string(100, '[')).errors,
              ElementsAre("the file is nested deeper than 32 levels"));
  EXPECT_THAT(ReadHfConfig("{\"\xff\": 1}").errors,
              ElementsAre(HasSubstr("not UTF-8 text")));
  EXPECT_THAT(ReadHfConfig(std::string(2 << 20, ' ')).errors,
              ElementsAre(HasSubstr("at most 1048576 (1 MiB)")));
  EXPECT_THAT(ReadHfConfig("{}").errors,
              ElementsAre(HasSubstr("model_type: is missing")));
}

}  // namespace
}  // namespace penstock::coordinator::spec
