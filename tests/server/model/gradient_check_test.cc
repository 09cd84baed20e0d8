// Finite differences through whole chunks with dropout on, which torch's dumps
// cannot cover: for each parameter tensor, the slope of the loss along the
// tensor's gradient must be the gradient's length. The masks are a function of
// step, sample and site, so the loss is a fixed function of the weights.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/model/init.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::server::model {
namespace {

using ::penstock::testing::CutEvenly;
using ::penstock::testing::NamedTensors;
using ::penstock::testing::SequentialPipeline;
using ::penstock::testing::StepBatch;

ModelConfig Gpt2() {
  return {.family = Family::kGpt2,
          .layers = 2,
          .width = 12,
          .heads = 3,
          .kv_heads = 3,
          .head_dim = 4,
          .ffn_width = 20,
          .context = 9,
          .vocab = 23,
          .tied = true,
          .dropout = 0.3,
          .init_std = 0.2};
}

ModelConfig Llama() {
  ModelConfig config = Gpt2();
  config.family = Family::kLlama;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;  // Not width / heads.
  config.tied = false;
  config.rope_scaling = {.kind = RopeScalingKind::kLlama3,
                         .factor = 2,
                         .low_freq_factor = 1,
                         .high_freq_factor = 4,
                         .original_context = 16};
  return config;
}

// Two micro-batches of two sequences; some labels are ignored.
StepBatch Batch() {
  StepBatch batch{.step = 5, .first_sample = 100};
  for (int s = 0; s < 4; ++s) {
    std::vector<int32_t>& ids = batch.ids.emplace_back();
    std::vector<int32_t>& labels = batch.labels.emplace_back();
    for (int t = 0; t < 7; ++t) {
      ids.push_back((5 * s + 3 * t) % 23);
      labels.push_back((s + t) % 4 == 0 ? -100 : (5 * s + 3 * t + 4) % 23);
    }
  }
  return batch;
}

class GradientCheckTest : public ::testing::TestWithParam<ModelConfig> {};

TEST_P(GradientCheckTest, SlopeAlongEachGradientIsItsLength) {
  const ModelConfig& model = GetParam();
  ASSERT_OK_AND_ASSIGN(const auto device,
                       server::device::reference::CreateReferenceDevice());
  ASSERT_OK_AND_ASSIGN(
      const auto pipeline,
      SequentialPipeline::Create(*device, {.model = model,
                                           .ranges = CutEvenly(2, 2),
                                           .shape = {.batch = 2, .seq = 7},
                                           .seed = 9}));
  NamedTensors weights;
  for (const ParameterSpec& spec : server::model::CanonicalParameters(model)) {
    std::vector<float>& values = weights[spec.name];
    values.resize(spec.shape.elements());
    Initialise(3, spec, absl::MakeSpan(values));
  }
  const auto loss_at = [&](const NamedTensors& at) {
    EXPECT_OK(pipeline->Load(
        [&](const ParameterSpec& spec, absl::Span<float> values) {
          const std::vector<float>& from = at.at(spec.name);
          std::copy(from.begin(), from.end(), values.begin());
          return absl::OkStatus();
        }));
    auto result = pipeline->Accumulate(Batch());
    EXPECT_OK(result.status());
    double sum = 0;
    for (const double loss : result->sequence_loss) sum += loss;
    return sum;
  };
  loss_at(weights);
  NamedTensors gradients;
  ASSERT_OK(pipeline->ReadGradients(
      [&](const ParameterSpec& spec, absl::Span<const float> values) {
        gradients[spec.name].assign(values.begin(), values.end());
        return absl::OkStatus();
      }));

  for (const auto& entry : gradients) {
    const std::string& name = entry.first;
    const std::vector<float>& gradient = entry.second;
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    const double length = std::sqrt(squares);
    ASSERT_GT(length, 0) << name;
    const double step = 2e-3 / std::max(1.0, length / 5);
    const auto moved = [&](double by) {
      NamedTensors at = weights;
      for (size_t i = 0; i < gradient.size(); ++i) {
        at[name][i] += static_cast<float>(by * gradient[i] / length);
      }
      return loss_at(at);
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    EXPECT_NEAR(slope, length, 2e-3 * length + 2e-3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GradientCheckTest,
                         ::testing::Values(Gpt2(), Llama()),
                         [](const auto& info) {
                           return info.param.family == Family::kGpt2 ? "gpt2"
                                                                     : "llama";
                         });

}  // namespace
}  // namespace penstock::server::model
