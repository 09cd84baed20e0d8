#include "tests/server/executor/bits_oracle.h"

#include <utility>

#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/init.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::testing {

Bits BitsOracle(server::device::Device& device,
                const server::model::ModelConfig& model, int64_t micro_batch) {
  const auto pipeline = SequentialPipeline::Create(
      device, {.model = model,
               .ranges = CutEvenly(model.layers, 1),
               .shape = {.batch = micro_batch, .seq = BitsJob::kSequence},
               .seed = 1,
               .optimizer = {.weight_decay = 0.1f},
               .learning_rate = BitsJob::kLearningRate});
  CHECK_OK(pipeline.status());
  CHECK_OK((*pipeline)->Load(
      [](const server::model::ParameterSpec& spec, absl::Span<float> values) {
        server::model::Initialise(1, spec, values);
        return absl::OkStatus();
      }));
  MadeUpData data(BitsJob::kSequence, model.vocab);
  Bits bits;
  for (int step = 0; step < BitsJob::kSteps; ++step) {
    StepBatch batch{.step = step + 1, .first_sample = step * BitsJob::kGlobal};
    for (int64_t i = 0; i < BitsJob::kGlobal; ++i) {
      CHECK_OK(data.Read(
          MadeUpData::Split::kTraining, batch.first_sample + i,
          absl::MakeSpan(batch.ids.emplace_back(BitsJob::kSequence)),
          absl::MakeSpan(batch.labels.emplace_back(BitsJob::kSequence))));
    }
    const auto result = (*pipeline)->Accumulate(batch);
    CHECK_OK(result.status());
    bits.loss.push_back(result->loss);
    bits.grad_norm.push_back(result->grad_norm);
    CHECK_OK((*pipeline)->Apply(*result));
  }
  const auto sha256 = (*pipeline)->WeightsSha256();
  CHECK_OK(sha256.status());
  bits.sha256 = *sha256;
  return bits;
}

void ExpectBits(Pipeline::Options options, const Bits& expected) {
  options.assignment.micro_batch =
      BitsJob::kGlobal / options.program.micro_batches;
  options.learning_rate = BitsJob::kLearningRate;
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  ASSERT_OK_AND_ASSIGN(const std::vector<Pipeline::Step> steps,
                       pipeline->Train(BitsJob::kSteps));
  for (int step = 0; step < BitsJob::kSteps; ++step) {
    EXPECT_EQ(steps[step].loss, expected.loss[step]);
    EXPECT_EQ(steps[step].grad_norm, expected.grad_norm[step]);
  }
  EXPECT_THAT(pipeline->End(), IsOkAndHolds(expected.sha256));
}

}  // namespace penstock::testing
