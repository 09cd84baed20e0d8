// The outside truth: loss, gradients, norms, loss curve and final weights of
// every parity case against torch, for every micro-batch size and device.
// chunk_bits_test.cc shows that cutting into chunks changes no bit.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/deviations.h"
#include "tests/server/model/parity_case.h"
#include "tests/server/model/sequential_pipeline.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::model {
namespace {

using ::penstock::testing::CreateTestDevice;
using ::penstock::testing::CutEvenly;
using ::penstock::testing::Deviations;
using ::penstock::testing::Figure;
using ::penstock::testing::ParityBatch;
using ::penstock::testing::ParityCase;
using ::penstock::testing::ParityListing;
using ::penstock::testing::ParityListings;
using ::penstock::testing::ParityStep;
using ::penstock::testing::ReadParityCase;
using ::penstock::testing::SequentialPipeline;
using ::penstock::testing::StepResult;

// A case with one of its micro-batch sizes, on a device.
struct Cell {
  std::string name;
  int64_t micro_batch = 1;
  std::string device;
};

std::vector<Cell> Cells() {
  std::vector<Cell> cells;
  for (const ParityListing& listing : ParityListings()) {
    for (const int64_t size : listing.micro_batch_sizes) {
      for (const char* device : {"reference", "cpu2"}) {
        cells.push_back({listing.name, size, device});
      }
    }
  }
  return cells;
}

class ParityTest : public ::testing::TestWithParam<Cell> {
 protected:
  static void TearDownTestSuite() {
    std::cout << "worst of all:\n" << all_.ToString();
  }
  // Notes the deviations of a step, and of its gradients where it is the first.
  void Compare(const ParityCase& parity, size_t step, const StepResult& result);

  inline static Deviations all_;
  Deviations deviations_;
};

void ParityTest::Compare(const ParityCase& parity, size_t step,
                         const StepResult& result) {
  const ParityStep& expected = parity.steps[step];
  const std::string where = absl::StrCat("step ", step + 1);
  EXPECT_EQ(result.valid, expected.valid_tokens) << where;
  deviations_.NoteNumber(step == 0 ? Figure::kFirstLoss : Figure::kLossCurve,
                         result.loss, expected.loss, where);
  deviations_.NoteNumber(Figure::kGradNorm, result.grad_norm,
                         expected.grad_norm, where);
  if (step > 0) return;
  ASSERT_EQ(result.sequence_loss.size(), expected.sequence_loss.size());
  for (size_t i = 0; i < expected.sequence_loss.size(); ++i) {
    deviations_.NoteNumber(Figure::kSequenceLoss, result.sequence_loss[i],
                           expected.sequence_loss[i],
                           absl::StrCat("sequence ", i));
  }
}

TEST_P(ParityTest, TrainsAsTorchDoes) {
  const Cell& cell = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")),
                     cell.name));
  ASSERT_OK_AND_ASSIGN(const auto device, CreateTestDevice(cell.device));
  ASSERT_OK_AND_ASSIGN(
      const auto pipeline,
      SequentialPipeline::Create(
          *device,
          {.model = parity.model,
           .ranges = CutEvenly(parity.model.layers, 1),
           .shape = {.batch = cell.micro_batch, .seq = parity.sequence_length},
           .learning_rate = parity.learning_rate}));
  ASSERT_OK(pipeline->Load(parity.Source()));

  std::set<std::string> seen;
  for (size_t step = 0; step < parity.steps.size(); ++step) {
    ASSERT_OK_AND_ASSIGN(const StepResult result,
                         pipeline->Accumulate(ParityBatch(parity, step)));
    Compare(parity, step, result);
    if (step == 0) {
      ASSERT_OK(
          pipeline->ReadGradients([&](const server::model::ParameterSpec& spec,
                                      absl::Span<const float> values) {
            seen.insert(spec.name);
            deviations_.NoteTensor(Figure::kFirstGradient, values,
                                   1.0 / result.valid,
                                   parity.gradients.at(spec.name), spec.name);
            return absl::OkStatus();
          }));
      EXPECT_EQ(seen.size(), parity.gradients.size());
    }
    ASSERT_OK(pipeline->Apply(result));
  }

  seen.clear();
  ASSERT_OK(pipeline->ReadWeights([&](const server::model::ParameterSpec& spec,
                                      absl::Span<const float> values) {
    seen.insert(spec.name);
    deviations_.NoteTensor(Figure::kFinalWeight, values, 1,
                           parity.weights.at(spec.name), spec.name);
    return absl::OkStatus();
  }));
  EXPECT_EQ(seen.size(), parity.weights.size());
  EXPECT_OK(deviations_.Check());
  all_.Merge(deviations_, absl::StrCat(cell.name, " micro-batch ",
                                       cell.micro_batch, " ", cell.device));
}

INSTANTIATE_TEST_SUITE_P(AllCases, ParityTest, ::testing::ValuesIn(Cells()),
                         [](const auto& info) {
                           return absl::StrCat(info.param.name, "_size_",
                                               info.param.micro_batch, "_on_",
                                               info.param.device);
                         });

}  // namespace
}  // namespace penstock::server::model
