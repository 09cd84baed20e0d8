#include "coordinator/planner/plan.h"

#include <tuple>
#include <utility>

#include "common/status/key_path.h"
#include "coordinator/planner/costs.h"
#include "coordinator/planner/parameter_sizes.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/planner/tiny_request.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::planner {
namespace {

using ::penstock::common::status::KeyPath;
using penstock::testing::StatusIs;
using ::testing::HasSubstr;

TEST(PlanTest, KeepsTheOrderOfTheScheduleAndItsPeaks) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(Tiny(4, 8)));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(plan.memory[rank].peak_in_flight, 4 - rank);  // 1F1B.
  }
  PlanRequest gpipe = Tiny(4, 8);
  gpipe.schedule = "gpipe";
  ASSERT_OK_AND_ASSIGN(const Plan all, MakePlan(gpipe));
  EXPECT_EQ(all.memory[3].peak_in_flight, 8);
}

TEST(PlanTest, EveryCornerOfStagesAndMicroBatchesHasAPlan) {
  for (const char* schedule : {"naive", "gpipe", "1f1b"}) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const int m : {1, 2, ranks - 1, ranks, ranks + 1, 16}) {
        if (m < 1) continue;
        PlanRequest request = Tiny(ranks, m);
        request.schedule = schedule;
        EXPECT_OK(MakePlan(request).status())
            << schedule << " K=" << ranks << " M=" << m;
      }
    }
  }
}

TEST(PlanTest, ModelledTimesAreTheCosts) {
  PlanRequest request = Tiny(2, 4);
  request.modelled = ModelledTimes{.rank = {.forward = 0.5,
                                            .backward_input = 0.25,
                                            .backward_weight = 0.25,
                                            .transfer = 2},
                                   .seconds_per_byte = 0.001};
  ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(request));
  // There and back once, and one forward and backward a micro-batch.
  const double transfer = 2 + 0.001 * 2 * 8 * 16 * 4;
  EXPECT_EQ(plan.costs.bytes.activation, 2 * 8 * 16 * 4);
  EXPECT_EQ(plan.costs.bytes.tied, 32 * 16 * 4);
  EXPECT_GE(plan.predicted.makespan, 5 + 2 * transfer);
  EXPECT_EQ(plan.costs.stages[1].of(schedule::Op::kBackward), 0.5);
}

TEST(PlanTest, AProfileHasTheTimesOfEachStage) {
  PlanRequest request = Tiny(2, 4);
  request.model.tied = false;
  request.modelled.emplace().stages = {
      {.times = {.forward = 1, .backward = 2}, .split = false},
      {.times = {.forward = 3, .backward = 4}, .split = false}};
  ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(request));
  EXPECT_EQ(plan.predicted.makespan, 1 + 4 * (3 + 4) + 2);
  request.ranks = 3;
  const absl::Status another = MakePlan(request).status();
  EXPECT_THAT(another,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has the times of 2 stages, and the pipeline "
                                 "has 3 (3 ranks, chunks: 1)")));
  EXPECT_EQ(KeyPath(another), "virtual.profile");
}

TEST(PlanTest, AScheduleThatSplitsNeedsAProfileThatDoes) {
  PlanRequest request = Tiny(1, 1);
  ASSERT_OK_AND_ASSIGN(
      request.given,
      schedule::ParseCsv("0F0,0I0,0W0\n",
                         {.ranks = 1, .micro_batches = 1, .name = "split"}));
  request.modelled.emplace().stages = {
      {.times = {.forward = 1, .backward = 2}, .split = false}};
  const absl::Status refused = MakePlan(request).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("stage 0 was measured with a full "
                                          "backward, and this schedule splits "
                                          "it")));
  EXPECT_EQ(KeyPath(refused), "virtual.profile");
  request.modelled->stages[0].split = true;
  EXPECT_OK(MakePlan(request).status());
}

TEST(PlanTest, TheSameRequestGivesTheSamePlan) {
  ASSERT_OK_AND_ASSIGN(const Plan a, MakePlan(Tiny(3, 5)));
  ASSERT_OK_AND_ASSIGN(const Plan b, MakePlan(Tiny(3, 5)));
  EXPECT_EQ(a.stages, b.stages);
  EXPECT_EQ(a.predicted.makespan, b.predicted.makespan);
  EXPECT_EQ(a.memory[0].total(), b.memory[0].total());
}

// The V shapes have the embedding and the head on one rank.
TEST(PlanTest, ASchedulesPlacementIsThePlans) {
  PlanRequest request = Tiny(4, 8);
  request.schedule = "zb-v";
  request.chunks = 2;
  ASSERT_OK_AND_ASSIGN(const Plan v, MakePlan(request));
  EXPECT_EQ(v.program.placement, schedule::VPlacement({4, 2}));
  EXPECT_EQ(v.stages.size(), 8);
  ASSERT_OK_AND_ASSIGN(const StageMap checks, MapForChecks(request));
  EXPECT_EQ(checks.placement, v.program.placement);
  EXPECT_EQ(checks.stages, v.stages);
  request.schedule = "interleaved";
  ASSERT_OK_AND_ASSIGN(const Plan loop, MakePlan(request));
  EXPECT_EQ(loop.program.placement, schedule::LoopPlacement({4, 2}));
}

TEST(PlanTest, AutoIsNoWorseThanAnyOtherAndSaysWhatItChose) {
  PlanRequest request = Tiny(3, 9);
  request.schedule = "auto";
  request.chunks = 2;
  ASSERT_OK_AND_ASSIGN(const Plan chosen, MakePlan(request));
  EXPECT_EQ(chosen.schedule, "auto");
  EXPECT_FALSE(chosen.found.empty());
  for (const schedule::NamedSchedule& named : schedule::kNamedSchedules) {
    if (named.value == schedule::ScheduleKind::kAuto) continue;
    PlanRequest other = request;
    other.schedule = std::string(named.name);
    other.chunks = *named.default_chunks;
    ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(other));
    EXPECT_TRUE(plan.found.empty());
    EXPECT_LE(chosen.predicted.makespan, plan.predicted.makespan * (1 + 1e-9))
        << named.name;
  }
}

// However many chunks it has, and however few auto would try by itself.
TEST(PlanTest, APartitionSaysHowManyChunksAutoLaysOut) {
  for (const auto& [ranks, chunks, micro_batches] :
       {std::tuple{1, 100, 4}, {64, 4, 1024}}) {
    SCOPED_TRACE(chunks);
    PlanRequest request = Tiny(ranks, micro_batches);
    request.schedule = "auto";
    request.chunks = chunks;
    request.model.layers = ranks * chunks;
    request.partition.emplace(ranks * chunks, 1);
    ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(request));
    EXPECT_EQ(plan.stages.size(), ranks * chunks);
  }
}

// Inputs are checked by ranks that hold the ends of every placement.
TEST(PlanTest, ChecksForAutoAreOfTheEndsOfEveryPlacement) {
  PlanRequest request = Tiny(3, 9);
  request.schedule = "auto";
  request.chunks = 2;
  request.partition = {{1, 1, 1, 1, 1, 1}};
  ASSERT_OK_AND_ASSIGN(const StageMap checks, MapForChecks(request));
  EXPECT_EQ(checks.placement, schedule::LoopPlacement({3, 1}));
  EXPECT_EQ(checks.stages.size(), 3);
  ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(request));
  EXPECT_EQ(plan.stages.size(), 6);  // As the partition says.
}

TEST(PlanTest, RefusalsNameTheKey) {
  PlanRequest request = Tiny(4, 4);
  request.schedule = "zb-h9";
  EXPECT_EQ(KeyPath(MakePlan(request).status()), "pipeline.schedule");
  EXPECT_EQ(KeyPath(MakePlan(Tiny(9, 4)).status()), "pipeline.stages");
  request = Tiny(2, 4);
  request.partition = {{5, 2}};
  EXPECT_EQ(KeyPath(MakePlan(request).status()), "pipeline.partition");
  request = Tiny(2, 40000);
  EXPECT_EQ(KeyPath(MakePlan(request).status()), "batch.micro_batch");
}

// The largest values that the job file takes, one at a time and together.
TEST(PlanTest, SizesBeyond64BitsAreRefusedAndNoOthersOverflow) {
  constexpr int64_t kWidth = int64_t{1} << 20, kFfn = int64_t{1} << 24;
  for (const int64_t layers : {6, 1000, 15000, 20000, 31000, 65536}) {
    PlanRequest request = Tiny(2, 2);
    request.model.layers = layers;
    request.model.width = kWidth;
    request.model.ffn_width = kFfn;
    const auto plan = MakePlan(request);
    if (!plan.ok()) {
      EXPECT_THAT(plan.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("weights")));
      EXPECT_EQ(KeyPath(plan.status()), "model");
      EXPECT_GE(layers, 1000);
      continue;
    }
    for (const RankMemory& rank : plan->memory) {
      EXPECT_GT(rank.total(), layers / 2 * 8 * kWidth * kFfn);
    }
  }
  PlanRequest long_context = Tiny(2, 2);
  long_context.batch = {.micro_batch = int64_t{1} << 24,
                        .sequence_length = int64_t{1} << 24};
  EXPECT_THAT(
      MakePlan(long_context).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("activations")));
}

TEST(PlanTest, AGivenOrderIsVerified) {
  PlanRequest request = Tiny(2, 2);
  ASSERT_OK_AND_ASSIGN(request.given,
                       schedule::ParseCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
                                          {.ranks = 2, .micro_batches = 2}));
  EXPECT_OK(MakePlan(request).status());
  ASSERT_OK_AND_ASSIGN(request.given,
                       schedule::ParseCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F1\n",
                                          {.ranks = 2, .micro_batches = 2}));
  const absl::Status refused = MakePlan(request).status();
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(">1F1<")));
  EXPECT_EQ(KeyPath(refused), "pipeline.schedule");
}

TEST(CostsTest, FollowTheShapes) {
  const PlanRequest request = Tiny(1, 1);
  const ModelCosts costs =
      AnalyticCosts(request.model, request.batch, Recompute::kNone);
  // The products of a block: 2 * rows * (w*3w + w*w + 2*w*f), rows 16.
  const double products = 2.0 * 16 * (16 * 48 + 16 * 16 + 2 * 16 * 64);
  EXPECT_EQ(costs.block.backward_weight, products);
  EXPECT_GT(costs.block.forward, products);
  EXPECT_GT(costs.block.backward_input, costs.block.forward);
  const ModelCosts again =
      AnalyticCosts(request.model, request.batch, Recompute::kFull);
  EXPECT_EQ(again.block.backward_input,
            costs.block.backward_input + costs.block.forward);
  EXPECT_EQ(again.block.forward, costs.block.forward);
}

TEST(ParameterSizesTest, CountAsTransformersDoes) {
  // GPT-2 small: 124,439,808 parameters in 148 tensors, the head tied.
  const ModelShape small = {.family = Family::kGpt2,
                            .layers = 12,
                            .width = 768,
                            .heads = 12,
                            .kv_heads = 12,
                            .head_dim = 64,
                            .ffn_width = 3072,
                            .context = 1024,
                            .vocab = 50257};
  EXPECT_EQ(CountElements(small), 124439808);
  EXPECT_EQ(CountParameters(small), 148);
  // Llama 2 7B: 6,738,415,616 parameters in 291 tensors.
  const ModelShape llama = {.family = Family::kLlama,
                            .layers = 32,
                            .width = 4096,
                            .heads = 32,
                            .kv_heads = 32,
                            .head_dim = 128,
                            .ffn_width = 11008,
                            .context = 4096,
                            .vocab = 32000,
                            .tied = false};
  EXPECT_EQ(CountElements(llama), 6738415616);
  EXPECT_EQ(CountParameters(llama), 291);
}

TEST(MemoryModelTest, WeightsStateAndGradientsFollowTheStageLayers) {
  ASSERT_OK_AND_ASSIGN(const Plan one, MakePlan(Tiny(1, 1)));
  ASSERT_OK_AND_ASSIGN(const Plan two, MakePlan(Tiny(2, 1)));
  const int64_t embedding = 32 * 16 * 4;
  // The head's rank holds a copy of the tied embedding, in both versions.
  EXPECT_EQ(two.memory[0].optimizer + two.memory[1].optimizer,
            one.memory[0].optimizer + 2 * 2 * embedding);
  PlanRequest sgd = Tiny(1, 1);
  sgd.optimizer = Optimizer::kSgd;
  ASSERT_OK_AND_ASSIGN(const Plan plain, MakePlan(sgd));
  EXPECT_EQ(plain.memory[0].optimizer, 0);
  EXPECT_EQ(plain.memory[0].gradients, one.memory[0].gradients);
}

}  // namespace
}  // namespace penstock::coordinator::planner
