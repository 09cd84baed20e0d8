// The outside truth: loss, gradients, norms, loss curve and final weights of
// every parity case against torch, for every micro-batch size and device.
// chunk_bits_test.cc shows that cutting into chunks changes no bit.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cpu/factory.h"
#include "server/device/reference/factory.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/parity_case.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::testing {
namespace {

// Relative to the largest element of the expected tensor.
void ExpectClose(const std::string& name, absl::Span<const float> actual,
                 const std::vector<float>& expected, double scale,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  double largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double difference = std::abs(actual[i] * scale - expected[i]);
    ASSERT_FALSE(std::isnan(difference)) << name << " element " << i;
    worst = std::max(worst, difference);
  }
  EXPECT_LE(worst, tolerance * largest) << name;
}

void ExpectLoss(double actual, double expected, double tolerance) {
  if (expected == 0) {
    EXPECT_LE(std::abs(actual), 1e-6);
  } else {
    EXPECT_LE(std::abs(actual - expected), tolerance * std::abs(expected))
        << actual << " vs " << expected;
  }
}

class ParityTest : public ::testing::TestWithParam<
                       std::tuple<std::string, int, std::string>> {};

// "reference", or "cpu" on the best level of this machine.
absl::StatusOr<std::unique_ptr<server::device::Device>> CreateDevice(
    const std::string& kind) {
  return kind == "cpu" ? server::device::cpu::CreateCpuDevice({.threads = 2})
                       : server::device::reference::CreateReferenceDevice();
}

TEST_P(ParityTest, TrainsAsTorchDoes) {
  const auto& [name, micro_batch, kind] = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")), name));
  if (micro_batch >= static_cast<int>(parity.micro_batch_sizes.size())) {
    GTEST_SKIP() << "the case lists fewer micro-batch sizes";
  }
  ASSERT_OK_AND_ASSIGN(const auto device, CreateDevice(kind));
  ASSERT_OK_AND_ASSIGN(
      const auto pipeline,
      SequentialPipeline::Create(
          *device, {.model = parity.model,
                    .ranges = CutEvenly(parity.model.layers, 1),
                    .shape = {.batch = parity.micro_batch_sizes[micro_batch],
                              .seq = parity.sequence_length},
                    .learning_rate = parity.learning_rate}));
  ASSERT_OK(pipeline->Load(parity.Source()));

  for (size_t step = 0; step < parity.steps.size(); ++step) {
    SCOPED_TRACE(step);
    const ParityStep& expected = parity.steps[step];
    ASSERT_OK_AND_ASSIGN(const StepResult result,
                         pipeline->Accumulate(ParityBatch(parity, step)));
    EXPECT_EQ(result.valid, expected.valid_tokens);
    ExpectLoss(result.loss, expected.loss, step == 0 ? 5e-6 : 1e-5);
    EXPECT_NEAR(result.grad_norm, expected.grad_norm,
                5e-5 * expected.grad_norm);
    if (step == 0) {
      ASSERT_EQ(result.sequence_loss.size(), expected.sequence_loss.size());
      for (size_t i = 0; i < expected.sequence_loss.size(); ++i) {
        ExpectLoss(result.sequence_loss[i], expected.sequence_loss[i], 5e-6);
      }
      size_t count = 0;
      ASSERT_OK(
          pipeline->ReadGradients([&](const server::model::ParameterSpec& spec,
                                      absl::Span<const float> values) {
            ++count;
            EXPECT_TRUE(parity.gradients.contains(spec.name)) << spec.name;
            ExpectClose(spec.name, values, parity.gradients.at(spec.name),
                        1.0 / result.valid, 2e-5);
            return absl::OkStatus();
          }));
      EXPECT_EQ(count, parity.gradients.size());
    }
    ASSERT_OK(pipeline->Apply(result));
  }

  size_t count = 0;
  ASSERT_OK(pipeline->ReadWeights([&](const server::model::ParameterSpec& spec,
                                      absl::Span<const float> values) {
    ++count;
    ExpectClose(spec.name, values, parity.weights.at(spec.name), 1, 1e-3);
    return absl::OkStatus();
  }));
  EXPECT_EQ(count, parity.weights.size());
}

INSTANTIATE_TEST_SUITE_P(
    AllCases, ParityTest,
    ::testing::Combine(::testing::ValuesIn(ParityCaseNames()),
                       ::testing::Values(0, 1, 2, 3),
                       ::testing::Values("reference", "cpu")),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_size_",
                          std::get<1>(info.param), "_on_",
                          std::get<2>(info.param));
    });

}  // namespace
}  // namespace penstock::testing
