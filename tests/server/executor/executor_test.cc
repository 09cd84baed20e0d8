// What an executor takes, refuses, reports and measures.
#include "server/executor/executor.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/virtual/factory.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using penstock::testing::EvaluateCommands;
using penstock::testing::IsOkAndHolds;
using penstock::testing::LowerNamed;
using penstock::testing::MadeUpData;
using penstock::testing::Pipeline;
using penstock::testing::StatusIs;
using penstock::testing::TinyModel;
using ::testing::HasSubstr;

Pipeline::Options Options(const std::string& schedule, int ranks,
                          int micro_batches) {
  return {
      .program = LowerNamed(
          {.name = schedule, .ranks = ranks, .micro_batches = micro_batches}),
      .assignment = {.model = TinyModel()}};
}

v1::ReleaseStep Release(int64_t step) {
  v1::ReleaseStep release;
  release.set_step(step);
  release.set_decision(v1::ReleaseStep::DECISION_APPLY);
  release.set_grad_scale(1);
  release.set_bias_correction1(0.1f);
  release.set_bias_correction2(0.05f);
  return release;
}

TEST(ExecutorTest, CommandsOutOfTurnAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(Options("1f1b", 1, 2)));
  Executor& executor = pipeline->executor(0);
  const auto evaluate = [](int64_t step) {
    return EvaluateCommands(LowerNamed({.micro_batches = 2}), 0, step, 1);
  };
  const auto refuses = [](const std::string& why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why));
  };
  EXPECT_THAT(pipeline->Enqueue(0, pipeline->Commands(0, 2)),
              refuses("TRAIN of step 2 is out of turn: step 1 is next"));
  EXPECT_THAT(pipeline->Enqueue(0, evaluate(1)),
              refuses("EVALUATE of step 1 is out of turn: step 0 is next"));
  EXPECT_THAT(pipeline->Enqueue(0, Release(1)),
              refuses("release of step 1, but no step is at the barrier"));
  ASSERT_OK(pipeline->Enqueue(0, pipeline->Commands(0, 1)));
  EXPECT_THAT(pipeline->Enqueue(0, pipeline->Commands(0, 1)),
              refuses("TRAIN of step 1 is out of turn: step 2 is next"));

  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // StepReport(1).
  EXPECT_THAT(pipeline->Enqueue(0, Release(2)),
              refuses("release of step 2, but step 1 is at the barrier"));
  EXPECT_THAT(pipeline->Enqueue(0, v1::ReleaseStep()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("decision 0 is not known")));
  ASSERT_OK(pipeline->Enqueue(0, Release(1)));
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // ApplyAck(1).
  EXPECT_EQ(executor.status().applied_step, 1);

  ASSERT_OK(pipeline->Enqueue(0, v1::End()));
  EXPECT_THAT(pipeline->Enqueue(0, v1::End()), refuses("END after END"));
  EXPECT_THAT(pipeline->Enqueue(0, pipeline->Commands(0, 2)),
              refuses("commands after END"));
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);
  pipeline->Abort();
  EXPECT_THAT(pipeline->Enqueue(0, pipeline->Commands(0, 2)),
              StatusIs(absl::StatusCode::kAborted));
}

// Without it a last step would look like no work at all, however long it takes.
TEST(ExecutorTest, TheStepThatRunsIsCountedAsQueued) {
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(Options("1f1b", 1, 2)));
  Executor& executor = pipeline->executor(0);
  EXPECT_EQ(executor.status().queued, 0);
  ASSERT_OK(pipeline->Enqueue(0, pipeline->Commands(0, 1)));
  EXPECT_EQ(executor.status().queued, 1);
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // StepReport(1).
  EXPECT_EQ(executor.status().queued, 1);
  ASSERT_OK(pipeline->Enqueue(0, pipeline->Commands(0, 2)));
  EXPECT_EQ(executor.status().queued, 2);
  ASSERT_OK(pipeline->Enqueue(0, Release(1)));
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // ApplyAck(1).
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // StepReport(2).
  EXPECT_EQ(executor.status().queued, 1);
  pipeline->Abort();
  EXPECT_EQ(executor.status().queued, 0);
}

// However late its engine sees that. No fake clock: the stream is held while
// it awaits the transport's end, and that takes real time.
TEST(ExecutorTest, AStepBeginsInTheStreamsTimeWhenItsReleaseCame) {
  const common::time::RealClock clock;
  Pipeline::Options options = Options("1f1b", 1, 2);
  options.device = [&clock](int) {
    return device::virtual_device::CreateVirtualDevice(clock).value();
  };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  Executor& executor = pipeline->executor(0);
  ASSERT_OK(pipeline->Enqueue(0, pipeline->Commands(0, 1)));
  ASSERT_OK(pipeline->Enqueue(0, pipeline->Commands(0, 2)));
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // StepReport(1).
  const auto came = clock.Monotonic() + absl::Milliseconds(20);
  ASSERT_OK(executor.Enqueue(Release(1), came));
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // ApplyAck(1).
  ASSERT_NE(pipeline->mailbox().Take(), nullptr);  // StepReport(2).
  EXPECT_GE(clock.Monotonic(), came);
}

TEST(ExecutorTest, BadProgramIsRefusedBeforeAnythingRuns) {
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(Options("1f1b", 1, 2)));
  v1::StepCommands commands = pipeline->Commands(0, 1);
  commands.mutable_commands()->RemoveLast();
  EXPECT_THAT(pipeline->Enqueue(0, commands),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("step 1: ends without 0B1")));
  EXPECT_EQ(pipeline->executor(0).status().progress, 0);
  EXPECT_EQ(pipeline->executor(0).status().queued, 0);
  // And leaves no trace: the right one is still next.
  EXPECT_OK(pipeline->Train(1).status());
}

TEST(ExecutorTest, EvaluationIsForwardOnlyWithoutDropout) {
  double expected = 0;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (double dropout : {0.0, 0.5}) {
      Pipeline::Options options = Options("1f1b", ranks, 2);
      options.assignment.model.dropout = dropout;
      ASSERT_OK_AND_ASSIGN(const auto pipeline,
                           Pipeline::Create(std::move(options)));
      ASSERT_OK_AND_ASSIGN(const v1::EvalReport report, pipeline->Evaluate(7));
      EXPECT_EQ(report.step(), 0);
      EXPECT_EQ(report.valid_tokens(), 7 * 8 - 10);
      if (expected == 0) expected = report.loss_sum();
      EXPECT_EQ(report.loss_sum(), expected);
      EXPECT_THAT(pipeline->Evaluate(7), ::testing::Truly([&](const auto& r) {
                    return r.ok() && r->loss_sum() == expected;
                  }));
    }
  }
  EXPECT_GT(expected, 0);
}

// Labels of step 2 are all ignored.
class EmptySecondStep final : public MicroBatchSource {
 public:
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override {
    const absl::Status status = data_.Read(split, first, ids, labels);
    if (first / 2 == 1) {
      for (int32_t& label : labels) label = device::kIgnoredLabel;
    }
    return status;
  }

 private:
  MadeUpData data_{8, 19};
};

TEST(ExecutorTest, SkippedStepLeavesTheWeightsAndAdvances) {
  Pipeline::Options options = Options("1f1b", 2, 2);
  options.data = [](int) { return std::make_unique<EmptySecondStep>(); };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  ASSERT_OK(pipeline->Train(1).status());
  ASSERT_OK_AND_ASSIGN(const std::string before, pipeline->WeightsSha256());
  ASSERT_OK_AND_ASSIGN(const auto steps, pipeline->Train(1));
  EXPECT_EQ(steps[0].valid, 0);
  EXPECT_EQ(steps[0].reports[1].losses(0).loss_sum(), 0);
  EXPECT_THAT(pipeline->WeightsSha256(), IsOkAndHolds(before));
  EXPECT_EQ(pipeline->executor(0).status().applied_step, 2);
  ASSERT_OK(pipeline->Train(1).status());
  ASSERT_OK_AND_ASSIGN(const std::string after, pipeline->WeightsSha256());
  EXPECT_NE(after, before);
}

TEST(ExecutorTest, ReportsTimesOfItsCommandsWhenAsked) {
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(Options("1f1b", 2, 3)));
  ASSERT_OK_AND_ASSIGN(const auto without, pipeline->Train(1));
  for (const v1::StepReport& report : without[0].reports) {
    EXPECT_EQ(report.timings_size(), 0);
    EXPECT_GT(report.busy_ns(), 0);
    EXPECT_LE(report.busy_ns(), report.span_ns());
  }
  for (int rank = 0; rank < 2; ++rank) {
    v1::StepCommands commands = pipeline->Commands(rank, 2);
    commands.set_full_timings(true);
    ASSERT_OK(pipeline->Enqueue(rank, commands));
  }
  for (int i = 0; i < 2; ++i) {
    const auto event = pipeline->mailbox().Take();
    ASSERT_NE(event, nullptr);
    const auto& report = std::get<v1::StepReport>(event->body);
    const v1::StepCommands commands = pipeline->Commands(event->rank, 2);
    ASSERT_EQ(report.timings_size(), commands.commands_size());
    int64_t busy = 0, last = 0;
    for (int c = 0; c < commands.commands_size(); ++c) {
      const v1::OpTiming& timing = report.timings(c);
      EXPECT_EQ(timing.op(), commands.commands(c).op());
      EXPECT_EQ(timing.stage(), commands.commands(c).stage());
      EXPECT_EQ(timing.micro_batch(), commands.commands(c).micro_batch());
      EXPECT_GE(timing.start_ns(), last);
      EXPECT_GE(timing.end_ns(), timing.start_ns());
      last = timing.end_ns();
      busy += timing.end_ns() - timing.start_ns();
    }
    EXPECT_EQ(report.timings(0).start_ns(), 0);
    EXPECT_EQ(report.busy_ns(), busy);
    EXPECT_GE(report.span_ns(), last);
  }
}

TEST(ExecutorTest, NonFiniteGradientIsNamed) {
  Pipeline::Options options = Options("1f1b", 2, 2);
  options.assignment.model.tied = false;
  options.program = LowerNamed({.ranks = 2, .micro_batches = 2, .tied = false});
  options.weights = [](const model::ParameterSpec& spec,
                       absl::Span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.01f * static_cast<float>(i % 7);
    }
    if (spec.name == "transformer.ln_f.bias") values[0] = INFINITY;
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  for (int i = 0; i < 2; ++i) {
    const auto event = pipeline->mailbox().Take();
    ASSERT_NE(event, nullptr);
    const auto& report = std::get<v1::StepReport>(event->body);
    ASSERT_FALSE(report.nonfinite().empty());
    // The first one of the rank, in canonical order.
    const auto& owned = pipeline->parameters(event->rank).owned();
    for (int p = 0; p < report.sums_size(); ++p) {
      EXPECT_EQ(report.sums(p).canonical_index(), owned[p].index);
      if (std::isfinite(report.sums(p).sum_squares())) continue;
      EXPECT_EQ(report.nonfinite(), owned[p].name);
      break;
    }
  }
}

// Remembers what it was asked to write.
class RecordingWriter final : public ModelWriter {
 public:
  absl::StatusOr<std::vector<std::string>> Write(
      const Request& request) override {
    ++shards_;
    std::vector<std::string> names;
    const absl::Status status = request.parameters.ReadWeights(
        request.stream,
        [&names](const model::ParameterSpec& spec,
                 absl::Span<const float> values) {
          EXPECT_EQ(values.size(), spec.shape.elements());
          names.push_back(spec.name);
          return absl::OkStatus();
        },
        absl::InfiniteFuture());
    if (!status.ok()) return status;
    if (request.end.model_directory() == "full") {
      return absl::ResourceExhaustedError("full/model.safetensors: disk full");
    }
    return names;
  }
  int shards() const { return shards_; }

 private:
  std::atomic<int> shards_{0};
};

TEST(ExecutorTest, EndWritesTheShardAndClosesInOrder) {
  RecordingWriter writer;
  Pipeline::Options options = Options("1f1b", 3, 2);
  options.writer = &writer;
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  ASSERT_OK(pipeline->Train(1).status());
  v1::End end;
  end.set_model_directory("model");
  std::vector<int64_t> before;
  for (int rank = 0; rank < 3; ++rank) {
    before.push_back(pipeline->executor(rank).status().progress);
    end.set_shard_file(absl::StrCat("shard-", rank));
    ASSERT_OK(pipeline->Enqueue(rank, end));
  }
  for (int i = 0; i < 3; ++i) {
    const auto event = pipeline->mailbox().Take();
    ASSERT_NE(event, nullptr);
    const auto& report = std::get<v1::EndReport>(event->body);
    EXPECT_EQ(report.shard_file(), absl::StrCat("shard-", event->rank));
    const auto& owned = pipeline->parameters(event->rank).owned();
    ASSERT_EQ(report.digests_size(), owned.size());
    ASSERT_EQ(report.shard_tensors_size(), owned.size());
    for (size_t p = 0; p < owned.size(); ++p) {
      EXPECT_EQ(report.digests(p).name(), owned[p].name);
      EXPECT_EQ(report.digests(p).sha256().size(), 32);
      EXPECT_EQ(report.shard_tensors(p), owned[p].name);
    }
    // END itself, and each tensor.
    EXPECT_GT(pipeline->executor(event->rank).status().progress,
              before[event->rank] + static_cast<int64_t>(owned.size()));
  }
  // Nobody takes the end of a neighbour for a failure.
  pipeline->StopExecutors();
  EXPECT_TRUE(pipeline->mailbox().TakeAll().empty());
}

// The gradients of the last step were finite, its update was not.
TEST(ExecutorTest, EndWithWeightsThatAreNotFiniteIsAFailureAndWritesNothing) {
  RecordingWriter writer;
  Pipeline::Options options = Options("1f1b", 2, 2);
  options.writer = &writer;
  options.learning_rate = std::numeric_limits<double>::infinity();
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  ASSERT_OK(pipeline->Train(1).status());
  v1::End end;
  end.set_model_directory("model");
  ASSERT_OK(pipeline->Enqueue(1, end));
  const auto event = pipeline->mailbox().Take();
  ASSERT_NE(event, nullptr);
  const auto& failure = std::get<v1::StageFailure>(event->body);
  EXPECT_EQ(failure.cause().reason(), "NONFINITE");
  EXPECT_EQ(failure.cause().stage_name(), "stage-1");
  EXPECT_THAT(failure.cause().message(), HasSubstr("after step 1"));
  EXPECT_EQ(writer.shards(), 0);
}

TEST(ExecutorTest, WriterThatFailsIsReported) {
  RecordingWriter writer;
  Pipeline::Options options = Options("1f1b", 1, 1);
  options.writer = &writer;
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  v1::End end;
  end.set_model_directory("full");
  ASSERT_OK(pipeline->Enqueue(0, end));
  const auto event = pipeline->mailbox().Take();
  ASSERT_NE(event, nullptr);
  const auto& failure = std::get<v1::StageFailure>(event->body);
  EXPECT_EQ(failure.cause().message(), "full/model.safetensors: disk full");
  EXPECT_EQ(failure.cause().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(failure.cause().stage_name(), "stage-0");
}

}  // namespace
}  // namespace penstock::server::executor
