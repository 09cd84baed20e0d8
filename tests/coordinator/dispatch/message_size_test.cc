#include "coordinator/dispatch/message_size.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/rpc/message_limit.h"
#include "coordinator/dispatch/command_stream.h"
#include "coordinator/dispatch/inputs.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/parameter_sizes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

planner::PlanRequest Request(int micro_batches) {
  const auto request = PlanRequestOf(TinyJob(2, micro_batches));
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

TEST(MessageSizeTest, TheBoundCoversTheRealCommandsAndIsNotFarOff) {
  for (const int micro_batches : {1, 100, 3000}) {
    const planner::PlanRequest request = Request(micro_batches);
    ASSERT_OK_AND_ASSIGN(const planner::Plan plan, planner::MakePlan(request));
    for (int rank = 0; rank < 2; ++rank) {
      const v1::StepCommands commands =
          TrainCommands(plan.program, rank, 1000000000, true);
      const int64_t bound = CommandsBytes({.commands = commands.commands_size(),
                                           .micro_batches = micro_batches,
                                           .stages = 2});
      EXPECT_GE(bound + 32, static_cast<int64_t>(commands.ByteSizeLong()));
      EXPECT_LE(bound, 2 * static_cast<int64_t>(commands.ByteSizeLong()));
    }
  }
}

TEST(MessageSizeTest, TheBoundCoversALongReport) {
  constexpr int kMicroBatches = 40000;
  v1::StepReport report;
  for (int i = 0; i < 2 * kMicroBatches; ++i) {
    v1::OpTiming& timing = *report.add_timings();
    timing.set_op(v1::OP_BACKWARD);
    timing.set_stage(1);
    timing.set_micro_batch(i / 2);
    timing.set_start_ns(86400000000000);  // A day.
    timing.set_end_ns(86400000000000);
  }
  for (int m = 0; m < kMicroBatches; ++m) {
    v1::MicroBatchLoss& loss = *report.add_losses();
    loss.set_micro_batch(m);
    loss.set_loss_sum(123.456);
    loss.set_valid_tokens(1000000);
  }
  const int64_t bound = ReportBytes({.commands = 2 * kMicroBatches,
                                     .micro_batches = kMicroBatches,
                                     .stages = 2});
  EXPECT_GE(bound, static_cast<int64_t>(report.ByteSizeLong()));
  EXPECT_LE(bound, static_cast<int64_t>(report.ByteSizeLong()) * 5 / 4);
}

TEST(MessageSizeTest, TheBoundCoversTheListsOfParameters) {
  constexpr int kParameters = 1000;
  v1::StageReady ready;
  v1::EndReport end;
  v1::StepReport sums;
  for (int i = 0; i < kParameters; ++i) {
    const std::string name = "transformer.h.65535.attn.c_attn.weight";
    ready.add_parameters()->set_name(name);
    ready.mutable_parameters(i)->set_canonical_index(i);
    ready.mutable_parameters(i)->set_elements(int64_t{1} << 40);
    ready.mutable_parameters(i)->set_owned(true);
    end.add_digests()->set_name(name);
    end.mutable_digests(i)->set_sha256(std::string(32, 'd'));
    end.add_shard_tensors(name);
    sums.add_sums()->set_canonical_index(i);
    sums.mutable_sums(i)->set_sum_squares(0.1);
  }
  const int64_t bound = ParameterListBytes(kParameters);
  const auto most = static_cast<int64_t>(std::max(
      {ready.ByteSizeLong(), end.ByteSizeLong(), sums.ByteSizeLong()}));
  EXPECT_GE(bound, most);
  EXPECT_LE(bound, 2 * most);
}

TEST(MessageSizeTest, MoreLayersThanAStageCanReportAreRefusedAtTheirKey) {
  FakeCluster cluster;
  cluster.Start(2);
  NewJob job = TinyJob(1, 1);
  job.spec.model.layers = 65536;
  EXPECT_THAT(
      cluster.Create(job).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("tiny.yaml:"), HasSubstr("model.layers"),
                     HasSubstr("65536 layers on one stage are too many"),
                     HasSubstr("raise pipeline.stages"))));
  job.spec.model.layers = 16384;
  EXPECT_OK(cluster.Create(job).status());
}

TEST(MessageSizeTest, AHundredThousandMicroBatchesAreRefusedAtOnce) {
  FakeCluster cluster;
  cluster.Start(2);
  EXPECT_THAT(
      cluster.Create(TinyJob(2, 100000)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("tiny.yaml:"), HasSubstr("batch.micro_batch"),
                     HasSubstr("100000 micro-batches a step are too many"),
                     HasSubstr("raise batch.micro_batch"))));
}

TEST(MessageSizeTest, WhatIsNamedAsFittingFits) {
  const planner::PlanRequest request = Request(100000);
  ASSERT_OK(CheckStepFits(Request(40000)));
  // The message names about how many fit; a few less do, whatever the rest.
  const std::string message(CheckStepFits(request).message());
  const size_t about = message.find("(about ");
  ASSERT_NE(about, std::string::npos) << message;
  const int fits = std::stoi(message.substr(about + 7));
  EXPECT_OK(CheckStepFits(Request(fits - 200)));
  EXPECT_THAT(
      CheckStepFits(Request(fits + 2000)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are too many")));
}

TEST(MessageSizeTest, AnEvaluationThatDoesNotFitIsRefusedAtItsKey) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).validation_sequences = 400000;
  cluster.stage(1).validation_sequences = 400000;
  NewJob job = TinyJob(2, 4);
  job.spec.data.validation = {{.share_millionths = 100000}};
  job.spec.evaluate = {{.every = 2, .batches = 100000}};
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), v1::Job::STATE_FAILED);
  EXPECT_EQ(cluster.Job().reason(), v1::Job::STATE_REASON_INVALID_SPEC);
  EXPECT_THAT(cluster.Job().cause().message(),
              AllOf(HasSubstr("evaluate.batches"),
                    HasSubstr("400000 validation micro-batches")));
}

// The largest values that the job file takes: their product has 64 bits and
// more.
TEST(MessageSizeTest, AnEvaluationOfMoreBatchesThanThereAreUsesWhatThereIs) {
  for (const int64_t global : {int64_t{10'000'000}, int64_t{1} << 24}) {
    NewJob job = TinyJob(1, 1);
    job.spec.batch = {.global = global, .micro_batch = 3};
    job.spec.data.validation = {{.share_millionths = 100000}};
    job.spec.evaluate = {{.every = 1, .batches = 1'000'000'000'000}};
    CheckedInputs checked{.stage_name = "stage-0", .reads_data = true};
    checked.answer.mutable_train()->set_sequences(100);
    checked.answer.mutable_train()->set_sequence_length(16);
    checked.answer.mutable_validation()->set_sequences(10);
    ASSERT_OK_AND_ASSIGN(const ResolvedInputs resolved,
                         ResolveInputs(job, {checked}, /*chunks=*/1));
    EXPECT_EQ(resolved.evaluation_micro_batches, 4) << global;
  }
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
