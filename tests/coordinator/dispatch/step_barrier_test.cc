#include "coordinator/dispatch/step_barrier.h"

#include <cmath>
#include <limits>

#include "coordinator/dispatch/barrier_math.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two ranks; the head is on rank 1. Parameter i is on rank i mod 2.
BarrierOptions TwoRanks(int micro_batches = 2) {
  return {
      .ranks = 2,
      .head_rank = 1,
      .micro_batches = micro_batches,
      .stages = 2,
      .micro_batch_tokens = 2,
      .parameters = 4,
      .steps = 10,
      .optimizer = {.lr = 0.5, .beta1 = 0.9, .beta2 = 0.95, .clip_norm = 1.0}};
}

v1::StepReport Report(int rank, int64_t step) {
  v1::StepReport report;
  report.set_step(step);
  for (int i = rank; i < 4; i += 2) {
    v1::TensorSum& sum = *report.add_sums();
    sum.set_canonical_index(i);
    sum.set_sum_squares(16);
  }
  for (int m = 0; rank == 1 && m < 2; ++m) {
    v1::MicroBatchLoss& loss = *report.add_losses();
    loss.set_micro_batch(m);
    loss.set_loss_sum(3);
    loss.set_valid_tokens(2);
  }
  return report;
}

StepResult MustRelease(StepBarrier& barrier) {
  auto result = barrier.Release();
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->has_value());
  return **result;
}

bool Waits(StepBarrier& barrier) {
  const auto result = barrier.Release();
  return result.ok() && !result->has_value();
}

TEST(StepBarrierTest, ReleasesWhenAllHaveReportedAndSaysWhatToApply) {
  StepBarrier barrier(TwoRanks());
  ASSERT_OK(barrier.AddReport(0, Report(0, 1)));
  EXPECT_TRUE(Waits(barrier));
  EXPECT_THAT(barrier.Missing(), ElementsAre(1));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  const StepResult result = MustRelease(barrier);
  // Norm: sqrt(4 * 16) = 8 over 4 tokens.
  EXPECT_EQ(result.grad_norm, 2.0);
  EXPECT_EQ(result.loss_sum, 6.0);
  EXPECT_EQ(result.valid_tokens, 4);
  EXPECT_EQ(result.release.decision(), v1::ReleaseStep::DECISION_APPLY);
  EXPECT_EQ(result.release.grad_scale(),
            static_cast<float>(1.0 / (2.0 + 1e-6) / 4));
  EXPECT_EQ(result.release.learning_rate(), 0.5f);
  EXPECT_EQ(result.release.adam_t(), 1);
  EXPECT_EQ(result.release.bias_correction1(), static_cast<float>(1 - 0.9));
  EXPECT_EQ(result.release.bias_correction2(), static_cast<float>(1 - 0.95));
  EXPECT_TRUE(Waits(barrier));  // Once.
}

TEST(StepBarrierTest, TheNextStepWaitsForEveryAck) {
  StepBarrier barrier(TwoRanks());
  ASSERT_OK(barrier.AddReport(0, Report(0, 1)));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  MustRelease(barrier);
  ASSERT_OK(barrier.AddAck(0, 1));
  EXPECT_EQ(barrier.applied(), 0);
  EXPECT_THAT(barrier.Missing(), ElementsAre(1));
  // Rank 0 is ahead: it reports step 2 while rank 1's ack is on its way.
  ASSERT_OK(barrier.AddReport(0, Report(0, 2)));
  EXPECT_TRUE(Waits(barrier));
  ASSERT_OK(barrier.AddAck(1, 1));
  EXPECT_EQ(barrier.applied(), 1);
  EXPECT_TRUE(Waits(barrier));
  ASSERT_OK(barrier.AddReport(1, Report(1, 2)));
  EXPECT_EQ(MustRelease(barrier).step, 2);
}

TEST(StepBarrierTest, AReportOfTheNextStepIsAnAck) {
  StepBarrier barrier(TwoRanks());
  ASSERT_OK(barrier.AddReport(0, Report(0, 1)));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  MustRelease(barrier);
  ASSERT_OK(barrier.AddReport(0, Report(0, 2)));
  ASSERT_OK(barrier.AddReport(1, Report(1, 2)));
  EXPECT_EQ(barrier.applied(), 1);
  EXPECT_EQ(MustRelease(barrier).release.adam_t(), 2);
}

TEST(StepBarrierTest, DuplicatesDoNothing) {
  StepBarrier barrier(TwoRanks());
  ASSERT_OK(barrier.AddReport(0, Report(0, 1)));
  v1::StepReport other = Report(0, 1);
  other.mutable_sums(0)->set_sum_squares(1000);
  ASSERT_OK(barrier.AddReport(0, other));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  EXPECT_EQ(MustRelease(barrier).grad_norm, 2.0);
  ASSERT_OK(barrier.AddAck(0, 1));
  ASSERT_OK(barrier.AddAck(0, 1));
  EXPECT_EQ(barrier.applied(), 0);
  ASSERT_OK(barrier.AddAck(1, 1));
  ASSERT_OK(barrier.AddAck(1, 1));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  EXPECT_EQ(barrier.applied(), 1);
}

TEST(StepBarrierTest, WhatCannotBeIsRefused) {
  StepBarrier barrier(TwoRanks());
  EXPECT_THAT(barrier.AddReport(0, Report(0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("step 1 is not released")));
  EXPECT_THAT(barrier.AddAck(0, 1), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("not released")));
  v1::StepReport few = Report(1, 1);
  few.mutable_losses()->RemoveLast();
  EXPECT_THAT(barrier.AddReport(1, few),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 losses for 2 micro-batches")));
  v1::StepReport twice = Report(1, 1);
  twice.mutable_losses(1)->set_micro_batch(0);
  EXPECT_THAT(barrier.AddReport(1, twice),
              StatusIs(absl::StatusCode::kInvalidArgument));
  v1::StepReport losses = Report(0, 1);
  losses.add_losses();
  EXPECT_THAT(
      barrier.AddReport(0, losses),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the head")));
}

// Each of them would be added up, or be a key of what is kept.
TEST(StepBarrierTest, NumbersThatNoStepHasAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const struct {
    const char* what;
    void (*change)(v1::StepReport& report);
  } kCases[] = {
      {"valid tokens in micro-batch 1, of 2",
       [](v1::StepReport& r) { r.mutable_losses(1)->set_valid_tokens(kMost); }},
      {"3 valid tokens in micro-batch 0, of 2",
       [](v1::StepReport& r) { r.mutable_losses(0)->set_valid_tokens(3); }},
      {"-1 valid tokens",
       [](v1::StepReport& r) { r.mutable_losses(0)->set_valid_tokens(-1); }},
      {"a time of -1 ns", [](v1::StepReport& r) { r.set_busy_ns(-1); }},
      {"a time of", [](v1::StepReport& r) { r.set_span_ns(kMost); }},
      {"? of stage 0",
       [](v1::StepReport& r) {
         r.mutable_timings(0)->set_op(static_cast<v1::Op>(7));
       }},
      {"? of stage 0",
       [](v1::StepReport& r) {
         r.mutable_timings(0)->set_op(v1::OP_UNSPECIFIED);
       }},
      {"F of stage 2",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_stage(2); }},
      {"F of stage -1",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_stage(-1); }},
      {"micro-batch 2",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_micro_batch(2); }},
      {"micro-batch -1",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_micro_batch(-1); }},
      {"from -1 to 20 ns",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_start_ns(-1); }},
      {"from 10 to 9 ns",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_end_ns(9); }},
      {"from 10 to",
       [](v1::StepReport& r) { r.mutable_timings(0)->set_end_ns(kMost); }},
  };
  for (const auto& each : kCases) {
    StepBarrier barrier(TwoRanks());
    v1::StepReport report = Report(1, 1);
    v1::OpTiming& timing = *report.add_timings();
    timing.set_op(v1::OP_FORWARD);
    timing.set_start_ns(10);
    timing.set_end_ns(20);
    const v1::StepReport good = report;
    each.change(report);
    EXPECT_THAT(
        barrier.AddReport(1, report),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(each.what)));
    EXPECT_EQ(barrier.accepted(), 0);
    EXPECT_OK(barrier.AddReport(1, good));
  }
}

TEST(StepBarrierTest, StepsCountFromOne) {
  StepBarrier barrier(TwoRanks());
  for (const int64_t step :
       {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(barrier.AddReport(0, Report(0, step)),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(barrier.AddAck(0, step),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(StepBarrierTest, SumsMustCoverEveryParameterOnce) {
  StepBarrier twice(TwoRanks());
  v1::StepReport report = Report(0, 1);
  report.mutable_sums(0)->set_canonical_index(1);
  ASSERT_OK(twice.AddReport(0, report));
  ASSERT_OK(twice.AddReport(1, Report(1, 1)));
  EXPECT_THAT(twice.Release().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("parameter 1 of 4, which rank 0 did")));
  StepBarrier missing(TwoRanks());
  report = Report(0, 1);
  report.mutable_sums()->RemoveLast();
  ASSERT_OK(missing.AddReport(0, report));
  ASSERT_OK(missing.AddReport(1, Report(1, 1)));
  EXPECT_THAT(missing.Release().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no rank reports parameter 2")));
}

TEST(StepBarrierTest, NoValidTokenUpdatesNothing) {
  StepBarrier barrier(TwoRanks());
  v1::StepReport empty = Report(1, 1);
  for (auto& loss : *empty.mutable_losses()) {
    loss.set_loss_sum(0);
    loss.set_valid_tokens(0);
  }
  ASSERT_OK(barrier.AddReport(0, Report(0, 1)));
  ASSERT_OK(barrier.AddReport(1, empty));
  const StepResult result = MustRelease(barrier);
  EXPECT_TRUE(result.skipped());
  EXPECT_TRUE(result.nonfinite.empty());
  EXPECT_TRUE(std::isnan(result.grad_norm));
  EXPECT_EQ(result.release.adam_t(), 0);
  EXPECT_EQ(result.release.learning_rate(), 0.5f);  // It advances.
}

TEST(StepBarrierTest, ASkippedStepDoesNotCountAsAnUpdate) {
  StepBarrier barrier(TwoRanks());
  v1::StepReport bad = Report(0, 1);
  bad.set_nonfinite("transformer.wte.weight");
  ASSERT_OK(barrier.AddReport(0, bad));
  ASSERT_OK(barrier.AddReport(1, Report(1, 1)));
  const StepResult first = MustRelease(barrier);
  EXPECT_TRUE(first.skipped());
  EXPECT_EQ(first.nonfinite_rank, 0);
  EXPECT_THAT(first.nonfinite, HasSubstr("transformer.wte.weight"));
  ASSERT_OK(barrier.AddReport(0, Report(0, 2)));
  ASSERT_OK(barrier.AddReport(1, Report(1, 2)));
  const StepResult second = MustRelease(barrier);
  EXPECT_FALSE(second.skipped());
  EXPECT_EQ(second.release.adam_t(), 1);
}

TEST(StepBarrierTest, FindsWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  StepBarrier loss(TwoRanks());
  v1::StepReport report = Report(1, 1);
  report.mutable_losses(1)->set_loss_sum(inf);
  ASSERT_OK(loss.AddReport(0, Report(0, 1)));
  ASSERT_OK(loss.AddReport(1, report));
  EXPECT_THAT(MustRelease(loss).nonfinite, HasSubstr("micro-batch 1"));

  StepBarrier sum(TwoRanks());
  report = Report(0, 1);
  report.mutable_sums(1)->set_sum_squares(std::nan(""));
  ASSERT_OK(sum.AddReport(0, report));
  ASSERT_OK(sum.AddReport(1, Report(1, 1)));
  EXPECT_THAT(MustRelease(sum).nonfinite, HasSubstr("parameter 2"));

  StepBarrier overflow(TwoRanks());
  report = Report(0, 1);
  for (auto& entry : *report.mutable_sums()) {
    entry.set_sum_squares(std::numeric_limits<double>::max());
  }
  ASSERT_OK(overflow.AddReport(0, report));
  ASSERT_OK(overflow.AddReport(1, Report(1, 1)));
  EXPECT_THAT(MustRelease(overflow).nonfinite, HasSubstr("norm"));
}

TEST(StepBarrierTest, TheSplitOverRanksDoesNotChangeTheNorm) {
  // The same 4 sums on one rank, in canonical order.
  BarrierOptions one = TwoRanks();
  one.ranks = 1;
  one.head_rank = 0;
  const double sums[] = {1e16, 1, 1, 3};
  StepBarrier whole(one), split(TwoRanks());
  v1::StepReport all = Report(1, 1);
  all.clear_sums();
  v1::StepReport parts[] = {Report(0, 1), Report(1, 1)};
  for (auto& part : parts) part.clear_sums();
  for (int i = 0; i < 4; ++i) {
    for (v1::StepReport* report : {&all, &parts[i % 2]}) {
      report->add_sums()->set_canonical_index(i);
      report->mutable_sums(report->sums_size() - 1)->set_sum_squares(sums[i]);
    }
  }
  ASSERT_OK(whole.AddReport(0, all));
  ASSERT_OK(split.AddReport(0, parts[0]));
  ASSERT_OK(split.AddReport(1, parts[1]));
  EXPECT_EQ(MustRelease(whole).grad_norm, MustRelease(split).grad_norm);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
