// Promise 2: the gradient is that of the full mini-batch, however it is cut
// into micro-batches. Runs of one global batch with different M agree within
// rounding, also with dropout, whose masks must not know of M.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/parity_run.h"
#include "tests/server/executor/pipeline.h"
#include "tests/server/model/parity_case.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::CreateTestDevice;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::NamedTensors;
using ::penstock::testing::ParityCase;
using ::penstock::testing::ParityData;
using ::penstock::testing::Pipeline;
using ::penstock::testing::ReadParityCase;

constexpr double kFirstLoss = 1e-6;  // Relative.
constexpr double kLossCurve = 1e-5;  // Relative, of every step.
constexpr double kGradNorm = 5e-5;   // Relative, of the first step.
constexpr double kWeights = 1e-3;    // Of the tensor's largest element.
constexpr int kRanks = 2;

struct Outcome {
  std::vector<double> losses;
  double first_grad_norm = 0;
  NamedTensors weights;
};

// The largest difference, relative to the largest element of `expected`.
double Difference(const std::vector<float>& actual,
                  const std::vector<float>& expected) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    worst = std::max(worst, std::abs(double{actual[i]} - expected[i]));
  }
  return worst / largest;
}

double Difference(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

// Device, case, dropout.
class MicroBatchesTest : public ::testing::TestWithParam<
                             std::tuple<std::string, std::string, double>> {
 protected:
  void Train(const ParityCase& parity, int64_t micro_batch, Outcome& outcome) {
    const int micro_batches = parity.sequences_per_step / micro_batch;
    ASSERT_OK_AND_ASSIGN(
        const auto pipeline,
        Pipeline::Create(
            {.program = LowerNamed({.ranks = kRanks,
                                    .micro_batches = micro_batches,
                                    .tied = parity.model.tied}),
             .assignment = {.model = parity.model,
                            .micro_batch = micro_batch,
                            .sequence_length = parity.sequence_length},
             .learning_rate = parity.learning_rate,
             .weights = parity.Source(),
             .data = [&](int) { return std::make_unique<ParityData>(parity); },
             .device =
                 [](int) {
                   return CreateTestDevice(std::get<0>(GetParam())).value();
                 }}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Pipeline::Step> steps,
                         pipeline->Train(parity.steps.size()));
    for (const Pipeline::Step& step : steps) {
      outcome.losses.push_back(step.loss);
    }
    outcome.first_grad_norm = steps[0].grad_norm;
    ASSERT_OK(
        pipeline->ReadWeights([&](const server::model::ParameterSpec& spec,
                                  absl::Span<const float> values) {
          outcome.weights[spec.name].assign(values.begin(), values.end());
          return absl::OkStatus();
        }));
  }
};

TEST_P(MicroBatchesTest, EveryCutOfTheBatchTrainsTheSameModel) {
  const auto& [device, name, dropout] = GetParam();
  ASSERT_OK_AND_ASSIGN(
      ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")), name));
  parity.model.dropout = dropout;
  Outcome whole;
  Train(parity, parity.sequences_per_step, whole);
  ASSERT_FALSE(HasFatalFailure());
  // Dropout is really on, or really off: with weights as small as these it
  // shows in the gradient more than in the loss.
  const double to_torch =
      Difference(whole.first_grad_norm, parity.steps[0].grad_norm);
  EXPECT_EQ(to_torch < 10 * kGradNorm, dropout == 0) << to_torch;

  for (const int64_t micro_batch : parity.micro_batch_sizes) {
    if (micro_batch == parity.sequences_per_step) continue;
    SCOPED_TRACE(absl::StrCat("micro-batches of ", micro_batch));
    Outcome cut;
    Train(parity, micro_batch, cut);
    ASSERT_FALSE(HasFatalFailure());
    const double first = Difference(cut.losses[0], whole.losses[0]);
    const double norm = Difference(cut.first_grad_norm, whole.first_grad_norm);
    EXPECT_LE(first, kFirstLoss);
    EXPECT_LE(norm, kGradNorm);
    double curve = 0, weights = 0;
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      curve = std::max(curve, Difference(cut.losses[i], whole.losses[i]));
    }
    EXPECT_LE(curve, kLossCurve);
    ASSERT_EQ(cut.weights.size(), whole.weights.size());
    for (const auto& [tensor, expected] : whole.weights) {
      const double difference = Difference(cut.weights[tensor], expected);
      EXPECT_LE(difference, kWeights) << tensor;
      weights = std::max(weights, difference);
    }
    RecordProperty(absl::StrCat("micro_batch_", micro_batch),
                   absl::StrCat("first loss ", first, " norm ", norm, " curve ",
                                curve, " weights ", weights));
  }
}

std::string NameOf(
    const ::testing::TestParamInfo<MicroBatchesTest::ParamType>& info) {
  const auto& [device, name, dropout] = info.param;
  return absl::StrCat(device, "_", name,
                      dropout == 0 ? "_no_dropout" : "_dropout");
}

// The cases with 20 steps, and the one whose micro-batches may be empty.
INSTANTIATE_TEST_SUITE_P(OnCpu, MicroBatchesTest,
                         ::testing::Combine(::testing::Values("cpu2"),
                                            ::testing::Values("gpt2_tiny",
                                                              "llama_gqa",
                                                              "gpt2_masked"),
                                            ::testing::Values(0.0, 0.1)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(OnReference, MicroBatchesTest,
                         ::testing::Combine(::testing::Values("reference"),
                                            ::testing::Values("llama_tied"),
                                            ::testing::Values(0.0, 0.1)),
                         NameOf);

}  // namespace
}  // namespace penstock::server::executor
