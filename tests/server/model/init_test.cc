#include "server/model/init.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/digest/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::server::model {
namespace {

using ::testing::Each;

ModelConfig Gpt2() {
  return {.family = Family::kGpt2,
          .layers = 8,
          .width = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 16,
          .ffn_width = 256,
          .context = 32,
          .vocab = 100,
          .tied = true};
}

std::vector<float> Values(uint64_t seed, const ParameterSpec& spec) {
  std::vector<float> values(spec.shape.elements());
  Initialise(seed, spec, absl::MakeSpan(values));
  return values;
}

const ParameterSpec& Find(const std::vector<ParameterSpec>& specs,
                          const std::string& name) {
  for (const ParameterSpec& spec : specs) {
    if (spec.name == name) return spec;
  }
  ADD_FAILURE() << name;
  return specs.front();
}

double StandardDeviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const double mean = sum / values.size();
  return std::sqrt(squares / values.size() - mean * mean);
}

TEST(InitTest, PartsAreThoseOfTheWhole) {
  const auto specs = CanonicalParameters(Gpt2());
  for (const char* name : {"transformer.wte.weight", "transformer.ln_f.weight",
                           "transformer.ln_f.bias"}) {
    const ParameterSpec& spec = Find(specs, name);
    const std::vector<float> whole = Values(1, spec);
    std::vector<float> parts(whole.size());
    for (size_t first = 0; first < parts.size(); first += 22) {
      InitialisePart(1, spec, first, absl::MakeSpan(parts).subspan(first, 22));
    }
    EXPECT_EQ(parts, whole) << name;
  }
}

TEST(InitTest, FollowsHuggingFacesRules) {
  const auto specs = CanonicalParameters(Gpt2());
  EXPECT_THAT(Values(1, Find(specs, "transformer.h.0.ln_1.weight")), Each(1));
  EXPECT_THAT(Values(1, Find(specs, "transformer.h.0.ln_1.bias")), Each(0));
  EXPECT_THAT(Values(1, Find(specs, "transformer.h.3.mlp.c_fc.bias")), Each(0));
  const auto expect_std = [&](const std::string& name, double expected) {
    EXPECT_NEAR(StandardDeviation(Values(1, Find(specs, name))), expected,
                0.05 * expected)
        << name;
  };
  expect_std("transformer.wte.weight", 0.02);
  expect_std("transformer.h.2.attn.c_attn.weight", 0.02);
  expect_std("transformer.h.2.mlp.c_fc.weight", 0.02);
  // sqrt(2 * 8 blocks) = 4
  expect_std("transformer.h.2.attn.c_proj.weight", 0.005);
  expect_std("transformer.h.2.mlp.c_proj.weight", 0.005);
}

TEST(InitTest, LlamaProjectionsAreNotScaledDown) {
  ModelConfig config = Gpt2();
  config.family = Family::kLlama;
  const auto specs = CanonicalParameters(config);
  for (const char* name : {"model.layers.1.self_attn.o_proj.weight",
                           "model.layers.1.mlp.down_proj.weight"}) {
    EXPECT_NEAR(StandardDeviation(Values(1, Find(specs, name))), 0.02, 0.001);
  }
  EXPECT_THAT(Values(1, Find(specs, "model.norm.weight")), Each(1));
}

TEST(InitTest, NormalValuesHaveTheRightShape) {
  const ParameterSpec spec{
      .name = "x", .shape = device::Shape({200, 1000}), .initial_std = 1};
  const std::vector<float> values = Values(7, spec);
  int within_one = 0, within_two = 0, positive = 0;
  for (const float v : values) {
    within_one += std::abs(v) < 1;
    within_two += std::abs(v) < 2;
    positive += v > 0;
  }
  const double count = values.size();
  EXPECT_NEAR(within_one / count, 0.6827, 0.005);
  EXPECT_NEAR(within_two / count, 0.9545, 0.003);
  EXPECT_NEAR(positive / count, 0.5, 0.005);
}

TEST(InitTest, DependsOnSeedAndNameAlone) {
  const auto specs = CanonicalParameters(Gpt2());
  const ParameterSpec& first = Find(specs, "transformer.h.0.mlp.c_fc.weight");
  ParameterSpec other = Find(specs, "transformer.h.1.mlp.c_fc.weight");
  EXPECT_EQ(Values(1, first), Values(1, first));
  EXPECT_NE(Values(1, first), Values(2, first));
  EXPECT_NE(Values(1, first), Values(1, other));
  other.name = first.name;
  EXPECT_EQ(Values(1, first), Values(1, other));
}

// A change of these bits changes every freshly started job: it needs a new
// numerics version and a release note.
TEST(InitTest, TheBitsAreFixed) {
  const ParameterSpec spec{.name = "transformer.wte.weight",
                           .shape = device::Shape({33, 5}),
                           .initial_std = 0.02};
  const std::vector<float> values = Values(42, spec);
  EXPECT_EQ(common::digest::ToHex(common::digest::Sha256Of(absl::MakeConstSpan(
                reinterpret_cast<const std::byte*>(values.data()),
                values.size() * sizeof(float)))),
            "21424bf355062132f29d615d9d6cbd1705fcdeb075c564a557f849893ef56118");
}

}  // namespace
}  // namespace penstock::server::model
