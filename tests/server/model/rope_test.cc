#include "server/model/rope.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::server::model {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

ModelConfig Llama(int64_t head_dim, double theta) {
  return {.family = Family::kLlama, .head_dim = head_dim, .rope_theta = theta};
}

TEST(RopeTest, FrequenciesFallGeometrically) {
  EXPECT_THAT(
      InverseFrequencies(Llama(8, 10000)),
      ElementsAre(1.0f, FloatEq(0.1f), FloatEq(0.01f), FloatEq(0.001f)));
}

TEST(RopeTest, LinearScalingDividesEveryFrequency) {
  ModelConfig config = Llama(4, 10000);
  config.rope_scaling = {.kind = RopeScalingKind::kLinear, .factor = 4};
  EXPECT_THAT(InverseFrequencies(config), ElementsAre(0.25f, FloatEq(0.0025f)));
}

// Llama 3.1 8B. Expected values from a separate computation in f64 of the
// formula in transformers' modeling_rope_utils.py.
TEST(RopeTest, Llama3ScalingKeepsHighAndStretchesLowFrequencies) {
  ModelConfig config = Llama(128, 500000);
  config.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                         .factor = 8,
                         .low_freq_factor = 1,
                         .high_freq_factor = 4,
                         .original_context = 8192};
  const std::vector<float> frequencies = InverseFrequencies(config);
  ASSERT_EQ(frequencies.size(), 64);
  const struct {
    int pair;
    double frequency;
  } kExpected[] = {{0, 1},
                   {1, 0.814617233857},
                   {20, 0.016560440081},
                   {28, 0.00321144599475},
                   {29, 0.0021665707635},
                   {30, 0.00137189356776},
                   {31, 0.00085675141292},
                   {32, 0.000524846160993},
                   {33, 0.000312693750384},
                   {34, 0.000178507812768},
                   {35, 9.55621235396e-05},
                   {36, 7.78465527393e-05},
                   {40, 3.42810219595e-05},
                   {63, 3.06892598891e-07}};
  for (const auto& expected : kExpected) {
    EXPECT_NEAR(frequencies[expected.pair], expected.frequency,
                2e-6 * expected.frequency)
        << expected.pair;
  }
}

TEST(RopeTest, TablesHoldCosineAndSineOfEachPositionAndPair) {
  const ModelConfig config = Llama(4, 10000);
  constexpr int64_t kSeq = 50;
  std::vector<float> cosine(kSeq * 2), sine(kSeq * 2);
  FillRopeTables(config, kSeq, absl::MakeSpan(cosine), absl::MakeSpan(sine));
  for (int64_t t = 0; t < kSeq; ++t) {
    EXPECT_NEAR(cosine[2 * t], std::cos(t), 1e-7);
    EXPECT_NEAR(sine[2 * t], std::sin(t), 1e-7);
    EXPECT_NEAR(cosine[2 * t + 1], std::cos(t * 0.01), 1e-7);
    EXPECT_NEAR(sine[2 * t + 1], std::sin(t * 0.01), 1e-7);
  }
}

}  // namespace
}  // namespace penstock::server::model
