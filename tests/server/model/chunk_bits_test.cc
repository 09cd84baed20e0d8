// A model gives the same bits however it is cut, whichever rank has the chunks,
// with whole or split backward, with or without recompute, on `reference` and
// on `cpu`, there also with two threads.
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/parity_case.h"
#include "tests/server/model/sequential_pipeline.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::model {
namespace {

using ::penstock::testing::CreateTestDevice;
using ::penstock::testing::CutEvenly;
using ::penstock::testing::ParityBatch;
using ::penstock::testing::ParityCase;
using ::penstock::testing::ParityCaseNames;
using ::penstock::testing::ParityStep;
using ::penstock::testing::ReadParityCase;
using ::penstock::testing::SequentialPipeline;
using ::penstock::testing::StepResult;

using Options = SequentialPipeline::Options;

// What a run leaves.
struct Trace {
  std::vector<double> losses;  // Per sequence, all steps.
  std::vector<double> norms;
  std::string weights_sha256;

  friend bool operator==(const Trace&, const Trace&) = default;
};

class ChunkBitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, CreateTestDevice("reference"));
  }

  void Train(const Options& options, const ParityCase& parity, int steps,
             Trace& trace) {
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         SequentialPipeline::Create(*device_, options));
    ASSERT_OK(pipeline->Load(parity.Source()));
    for (int step = 0; step < steps; ++step) {
      ASSERT_OK_AND_ASSIGN(const StepResult result,
                           pipeline->Accumulate(ParityBatch(parity, step)));
      trace.losses.insert(trace.losses.end(), result.sequence_loss.begin(),
                          result.sequence_loss.end());
      trace.norms.push_back(result.grad_norm);
      ASSERT_OK(pipeline->Apply(result));
    }
    ASSERT_OK_AND_ASSIGN(trace.weights_sha256, pipeline->WeightsSha256());
  }

  std::unique_ptr<server::device::Device> device_;
};

ParityCase ReadCase(const std::string& name) {
  auto parity =
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")), name);
  EXPECT_OK(parity.status());
  return *std::move(parity);
}

class EveryCaseTest : public ChunkBitsTest,
                      public ::testing::WithParamInterface<
                          std::tuple<std::string, std::string>> {};

TEST_P(EveryCaseTest, GivesTheSameBitsForEveryCutSplitAndRecompute) {
  const auto& [device_name, case_name] = GetParam();
  ASSERT_OK_AND_ASSIGN(device_, CreateTestDevice(device_name));
  ParityCase parity = ReadCase(case_name);
  parity.model.dropout = 0.1;
  parity.sequences_per_step = 4;  // Two micro-batches: enough for the order.
  constexpr int kSteps = 2;
  const int64_t layers = parity.model.layers;
  Options options{.model = parity.model,
                  .ranges = CutEvenly(layers, 1),
                  .shape = {.batch = 2, .seq = parity.sequence_length},
                  .learning_rate = parity.learning_rate};
  Trace whole;
  Train(options, parity, kSteps, whole);
  ASSERT_FALSE(HasFailure());

  const auto expect_same = [&](const std::string& what) {
    SCOPED_TRACE(what);
    Trace trace;
    Train(options, parity, kSteps, trace);
    EXPECT_EQ(trace.losses, whole.losses);
    EXPECT_EQ(trace.norms, whole.norms);
    EXPECT_EQ(trace.weights_sha256, whole.weights_sha256);
  };
  for (const int chunks : {2, 3, static_cast<int>(layers) + 2}) {
    options.ranges = CutEvenly(layers, chunks);
    expect_same(absl::StrCat(chunks, " ranks"));
  }
  options.backward = SequentialPipeline::Backward::kSplit;
  expect_same("split backward");
  options.recompute = Recompute::kFull;
  options.ranges = CutEvenly(layers, 3);
  expect_same("split backward, recompute");
  options.backward = SequentialPipeline::Backward::kWhole;
  expect_same("recompute");
  options.rank_per_chunk = false;
  expect_same("three chunks of one rank");
  if (device_name == "reference") return;
  ASSERT_OK_AND_ASSIGN(device_, CreateTestDevice("cpu2"));
  expect_same("two threads");
}

std::string NameOf(
    const ::testing::TestParamInfo<EveryCaseTest::ParamType>& info) {
  return absl::StrCat(std::get<0>(info.param), "_", std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    OnCpu, EveryCaseTest,
    ::testing::Combine(::testing::Values("cpu"),
                       ::testing::ValuesIn(ParityCaseNames())),
    NameOf);

// The smaller ones: plain loops under a sanitizer are slow.
INSTANTIATE_TEST_SUITE_P(OnReference, EveryCaseTest,
                         ::testing::Combine(::testing::Values("reference"),
                                            ::testing::Values("gpt2_untied_odd",
                                                              "gpt2_masked",
                                                              "llama_tied")),
                         NameOf);

TEST_F(ChunkBitsTest, SplitBackwardWithoutDropoutGivesTheSameBits) {
  const ParityCase parity = ReadCase("gpt2_untied_odd");
  Options options{.model = parity.model,
                  .ranges = CutEvenly(parity.model.layers, 3),
                  .shape = {.batch = 2, .seq = parity.sequence_length},
                  .learning_rate = parity.learning_rate};
  Trace whole, split, recomputed;
  Train(options, parity, 2, whole);
  options.backward = SequentialPipeline::Backward::kSplit;
  Train(options, parity, 2, split);
  options.recompute = Recompute::kFull;
  Train(options, parity, 2, recomputed);
  EXPECT_EQ(whole, split);
  EXPECT_EQ(whole, recomputed);
}

TEST_F(ChunkBitsTest, DropoutChangesTheLossAndItsSeedToo) {
  ParityCase parity = ReadCase("gpt2_tiny");
  Options options{.model = parity.model,
                  .ranges = CutEvenly(parity.model.layers, 1),
                  .shape = {.batch = 2, .seq = parity.sequence_length}};
  Trace without, with, other_seed;
  Train(options, parity, 1, without);
  options.model.dropout = 0.2;
  Train(options, parity, 1, with);
  options.seed = 2;
  Train(options, parity, 1, other_seed);
  EXPECT_NE(without.losses, with.losses);
  EXPECT_NE(with.losses, other_seed.losses);
}

TEST_F(ChunkBitsTest, EvaluationHasNoDropoutAndLeavesTrainingAlone) {
  ParityCase parity = ReadCase("gpt2_tiny");
  Options options{.model = parity.model,
                  .ranges = CutEvenly(parity.model.layers, 2),
                  .shape = {.batch = 4, .seq = parity.sequence_length}};
  options.model.dropout = 0.2;
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       SequentialPipeline::Create(*device_, options));
  ASSERT_OK(pipeline->Load(parity.Source()));
  ASSERT_OK_AND_ASSIGN(const StepResult before,
                       pipeline->Accumulate(ParityBatch(parity, 0)));

  ASSERT_OK_AND_ASSIGN(const StepResult evaluated,
                       pipeline->Evaluate(ParityBatch(parity, 0)));

  const ParityStep& expected = parity.steps[0];
  EXPECT_NEAR(evaluated.loss, expected.loss, 5e-6 * expected.loss);
  ASSERT_OK_AND_ASSIGN(const StepResult after,
                       pipeline->Accumulate(ParityBatch(parity, 0)));
  EXPECT_EQ(before.sequence_loss, after.sequence_loss);
  EXPECT_EQ(before.grad_norm, after.grad_norm);
}

}  // namespace
}  // namespace penstock::server::model
