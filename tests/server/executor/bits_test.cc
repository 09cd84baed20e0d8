// Promise 1: the same bits for every K, schedule and recompute setting, with
// dropout on. The oracle drives chunks one after the other on one thread.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "coordinator/schedule/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/model/init.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/pipeline.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::testing {
namespace {

constexpr int kSteps = 20;
constexpr int64_t kGlobal = 8;
constexpr int64_t kSequence = 8;
constexpr double kLearningRate = 1e-2;

struct Expected {
  std::string sha256;
  std::vector<double> loss;
  std::vector<double> grad_norm;
};

// What one thread makes of it, micro-batch after micro-batch.
Expected Oracle(const server::model::ModelConfig& model, int64_t micro_batch) {
  const auto device = server::device::reference::CreateReferenceDevice();
  CHECK_OK(device.status());
  const auto pipeline = SequentialPipeline::Create(
      **device, {.model = model,
                 .ranges = CutEvenly(model.layers, 1),
                 .shape = {.batch = micro_batch, .seq = kSequence},
                 .seed = 1,
                 .optimizer = {.weight_decay = 0.1f},
                 .learning_rate = kLearningRate});
  CHECK_OK(pipeline.status());
  CHECK_OK((*pipeline)->Load(
      [](const server::model::ParameterSpec& spec, absl::Span<float> values) {
        server::model::Initialise(1, spec, values);
        return absl::OkStatus();
      }));
  MadeUpData data(kSequence, model.vocab);
  Expected expected;
  for (int step = 0; step < kSteps; ++step) {
    StepBatch batch{.step = step + 1, .first_sample = step * kGlobal};
    for (int64_t i = 0; i < kGlobal; ++i) {
      CHECK_OK(data.Read(MadeUpData::Split::kTraining, step * kGlobal + i,
                         absl::MakeSpan(batch.ids.emplace_back(kSequence)),
                         absl::MakeSpan(batch.labels.emplace_back(kSequence))));
    }
    const auto result = (*pipeline)->Accumulate(batch);
    CHECK_OK(result.status());
    expected.loss.push_back(result->loss);
    expected.grad_norm.push_back(result->grad_norm);
    CHECK_OK((*pipeline)->Apply(*result));
  }
  const auto sha256 = (*pipeline)->WeightsSha256();
  CHECK_OK(sha256.status());
  expected.sha256 = *sha256;
  return expected;
}

// A pipeline of `program` gives what the oracle gives.
void ExpectOracle(const coordinator::schedule::LoweredProgram& program,
                  const server::model::ModelConfig& model, bool recompute,
                  const Expected& expected) {
  ASSERT_OK_AND_ASSIGN(
      const auto pipeline,
      Pipeline::Create(
          {.program = program,
           .assignment = {.model = model,
                          .micro_batch = kGlobal / program.micro_batches,
                          .full_recompute = recompute},
           .learning_rate = kLearningRate}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Pipeline::Step> steps,
                       pipeline->Train(kSteps));
  for (int step = 0; step < kSteps; ++step) {
    // Sums over micro-batches associate differently.
    EXPECT_DOUBLE_EQ(steps[step].loss, expected.loss[step]);
    EXPECT_EQ(steps[step].grad_norm, expected.grad_norm[step]);
  }
  EXPECT_THAT(pipeline->End(), IsOkAndHolds(expected.sha256));
}

// Schedule, M, tied.
using Param = std::tuple<std::string, int, bool>;
class BitsTest : public ::testing::TestWithParam<Param> {};

TEST_P(BitsTest, AreTheOraclesForEveryDepth) {
  const auto& [schedule, micro_batches, tied] = GetParam();
  server::model::ModelConfig model = TinyModel();
  model.tied = tied;
  const int64_t micro_batch = kGlobal / micro_batches;
  const Expected expected = Oracle(model, micro_batch);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (bool recompute : {false, true}) {
      SCOPED_TRACE(absl::StrCat("K ", ranks, " recompute ", recompute));
      ExpectOracle(LowerNamed({.name = schedule,
                               .ranks = ranks,
                               .micro_batches = micro_batches,
                               .tied = tied}),
                   model, recompute, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllSchedules, BitsTest,
    ::testing::Combine(::testing::Values("naive", "gpipe", "1f1b"),
                       ::testing::Values(1, 2, 4, 8), ::testing::Bool()),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param), "_M",
                          std::get<1>(info.param),
                          std::get<2>(info.param) ? "_tied" : "_untied");
    });

// Several chunks a rank, hand-overs without an edge, and split backwards: what
// the schedules of later issues ask for.
using coordinator::schedule::Op;

// All of a stage's micro-batches, then the next stage; forwards go up, input
// gradients down, then all weight gradients.
coordinator::schedule::LoweredProgram SplitProgram(
    const coordinator::schedule::Placement& placement, int micro_batches,
    bool tied) {
  coordinator::schedule::Schedule schedule = {
      .name = "split", .placement = placement, .micro_batches = micro_batches};
  for (int rank = 0; rank < placement.ranks; ++rank) {
    std::vector<coordinator::schedule::Command> order;
    const auto add = [&](Op op, int stage) {
      if (placement.rank_of(stage) != rank) return;
      for (int m = 0; m < micro_batches; ++m) order.push_back({op, stage, m});
    };
    const int stages = placement.stages();
    for (int s = 0; s < stages; ++s) add(Op::kForward, s);
    for (int s = stages; s-- > 0;) add(Op::kBackwardInput, s);
    for (int s = 0; s < stages; ++s) add(Op::kBackwardWeight, s);
    schedule.orders.push_back(std::move(order));
  }
  auto lowered =
      coordinator::schedule::Lower(schedule, {.tied_embedding = tied});
  CHECK_OK(lowered.status());
  return *std::move(lowered);
}

class ChunksTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(ChunksTest, SplitBackwardsAndLocalHandOversGiveTheOraclesBits) {
  const auto& [v_shaped, tied] = GetParam();
  server::model::ModelConfig model = TinyModel();
  model.tied = tied;
  const auto placement = v_shaped ? coordinator::schedule::VPlacement(2, 2)
                                  : coordinator::schedule::LoopPlacement(2, 2);
  for (int micro_batches : {1, 4}) {
    const Expected expected = Oracle(model, kGlobal / micro_batches);
    for (bool recompute : {false, true}) {
      SCOPED_TRACE(absl::StrCat("M ", micro_batches, " recompute ", recompute));
      ExpectOracle(SplitProgram(placement, micro_batches, tied), model,
                   recompute, expected);
      ExpectOracle(SplitProgram(coordinator::schedule::LoopPlacement(1, 3),
                                micro_batches, tied),
                   model, recompute, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, ChunksTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param) ? "V" : "loop",
                               std::get<1>(info.param) ? "_tied" : "_untied");
                         });

}  // namespace
}  // namespace penstock::testing
