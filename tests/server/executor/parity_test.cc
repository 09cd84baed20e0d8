// The outside truth through executors, transport and schedules: losses,
// gradients, norms, loss curve and final weights of every parity case against
// torch.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/pipeline.h"
#include "tests/server/model/parity_case.h"

namespace penstock::testing {
namespace {

using server::model::ParameterSpec;

// The case's sequences in file order.
class ParityData final : public server::executor::MicroBatchSource {
 public:
  explicit ParityData(const ParityCase& parity) : parity_(parity) {}

  absl::Status Read(Split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override {
    const int64_t length = parity_.sequence_length;
    const int64_t rows = std::max(ids.size(), labels.size());
    for (int64_t row = 0; row < rows / length; ++row) {
      if (!ids.empty()) {
        std::copy_n(parity_.ids[first + row].begin(), length,
                    ids.begin() + row * length);
      }
      if (!labels.empty()) {
        std::copy_n(parity_.labels[first + row].begin(), length,
                    labels.begin() + row * length);
      }
    }
    return absl::OkStatus();
  }

 private:
  const ParityCase& parity_;
};

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
  const double bound = expected == 0 ? 1e-6 : tolerance * std::abs(expected);
  EXPECT_LE(std::abs(actual - expected), bound) << actual << " vs " << expected;
}

// Case, ranks (0: as many as layers), schedule.
using Param = std::tuple<std::string, int, std::string>;
class ExecutorParityTest : public ::testing::TestWithParam<Param> {
 protected:
  // The first `count` steps; the final weights are compared after all of them.
  struct Job {
    int ranks = 1;
    std::string schedule;
    int64_t micro_batch = 1;
    int count = 0;
  };
  void Train(const ParityCase& parity, const Job& job);
};

void ExecutorParityTest::Train(const ParityCase& parity, const Job& job) {
  const int ranks = job.ranks;
  const int64_t micro_batch = job.micro_batch;
  const int micro_batches = parity.sequences_per_step / micro_batch;
  ASSERT_OK_AND_ASSIGN(
      const auto pipeline,
      Pipeline::Create(
          {.program = LowerNamed({.name = job.schedule,
                                  .ranks = ranks,
                                  .micro_batches = micro_batches,
                                  .tied = parity.model.tied}),
           .assignment = {.model = parity.model,
                          .micro_batch = micro_batch,
                          .sequence_length = parity.sequence_length},
           .learning_rate = parity.learning_rate,
           .weights = parity.Source(),
           .data = [&](int) { return std::make_unique<ParityData>(parity); }}));
  // At the first barrier the engines rest, and the gradients can be read.
  size_t gradients = 0;
  const auto read_gradients = [&](const Pipeline::Step& step) {
    if (pipeline->applied_step() > 0) return;
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_OK_AND_ASSIGN(const auto stream,
                           pipeline->device(rank).CreateStream("read"));
      ASSERT_OK(pipeline->parameters(rank).ReadGradients(
          *stream,
          [&](const ParameterSpec& spec, absl::Span<const float> values) {
            ++gradients;
            ExpectClose(spec.name, values, parity.gradients.at(spec.name),
                        1.0 / step.valid, 2e-5);
            return absl::OkStatus();
          },
          absl::InfiniteFuture()));
    }
  };
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       pipeline->Train(job.count, read_gradients));
  EXPECT_EQ(gradients, parity.gradients.size());
  for (int step = 0; step < job.count; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step + 1));
    const ParityStep& expected = parity.steps[step];
    EXPECT_EQ(steps[step].valid, expected.valid_tokens);
    ExpectLoss(steps[step].loss, expected.loss, step == 0 ? 5e-6 : 1e-5);
    EXPECT_NEAR(steps[step].grad_norm, expected.grad_norm,
                5e-5 * expected.grad_norm);
    // Per sequence, summed to micro-batches.
    if (step > 0) continue;
    const v1::StepReport& report = steps[step].reports[ranks - 1];
    ASSERT_EQ(report.losses_size(), micro_batches);
    for (int m = 0; m < micro_batches; ++m) {
      double sum = 0;
      for (int64_t b = 0; b < micro_batch; ++b) {
        sum += expected.sequence_loss[m * micro_batch + b];
      }
      ExpectLoss(report.losses(m).loss_sum(), sum, 5e-6);
    }
  }
  ASSERT_OK(pipeline->End().status());
  if (job.count < static_cast<int>(parity.steps.size())) return;
  size_t weights = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_OK_AND_ASSIGN(const auto stream,
                         pipeline->device(rank).CreateStream("read"));
    ASSERT_OK(pipeline->parameters(rank).ReadWeights(
        *stream,
        [&](const ParameterSpec& spec, absl::Span<const float> values) {
          ++weights;
          ExpectClose(spec.name, values, parity.weights.at(spec.name), 1, 1e-3);
          return absl::OkStatus();
        },
        absl::InfiniteFuture()));
  }
  EXPECT_EQ(weights, parity.weights.size());
}

TEST_P(ExecutorParityTest, TrainsAsTorchDoes) {
  const std::string name = std::get<0>(GetParam());
  ASSERT_OK_AND_ASSIGN(
      const ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")), name));
  const int ranks = std::get<1>(GetParam()) == 0
                        ? static_cast<int>(parity.model.layers) + 2
                        : std::get<1>(GetParam());
  const std::string schedule = std::get<2>(GetParam());
  const std::vector<int64_t>& sizes = parity.micro_batch_sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("micro-batch of ", sizes[i]));
    // The whole curve once for each K; the bits are the same for the others
    // (bits_test).
    const bool whole = schedule == "1f1b" && i == ranks % sizes.size();
    Train(parity, {.ranks = ranks,
                   .schedule = schedule,
                   .micro_batch = sizes[i],
                   .count = whole ? static_cast<int>(parity.steps.size()) : 2});
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllCases, ExecutorParityTest,
    ::testing::Combine(::testing::ValuesIn(ParityCaseNames()),
                       ::testing::Values(1, 2, 3, 0),
                       ::testing::Values("naive", "gpipe", "1f1b")),
    [](const auto& info) {
      const int ranks = std::get<1>(info.param);
      return absl::StrCat(std::get<0>(info.param), "_K_",
                          ranks == 0 ? "all" : absl::StrCat(ranks), "_",
                          std::get<2>(info.param));
    });

}  // namespace
}  // namespace penstock::testing
