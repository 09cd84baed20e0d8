// The numbers of metrics.jsonl, summary.json and trace.json, to the digit.
#include "coordinator/dispatch/accounting.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of a rank's step: an operation and how many seconds it took.
struct Ran {
  v1::Op op;
  int stage;
  int seconds;
};

TimedReport Report(const std::vector<Ran>& ops) {
  TimedReport timed;
  int64_t now = 5;
  for (const Ran& ran : ops) {
    v1::OpTiming& timing = *timed.report.add_timings();
    timing.set_op(ran.op);
    timing.set_stage(ran.stage);
    timing.set_start_ns(now);
    now += ran.seconds * int64_t{1000000000};
    timing.set_end_ns(now);
  }
  timed.report.set_span_ns(now);
  return timed;
}

// Commits steps 1, 2, ... one after the other.
class AccountingTest : public ::testing::Test {
 protected:
  // 16 valid tokens a step with 40 nats; a batch of 8 out of 20 sequences.
  v1::StepMetrics Commit(
      double seconds,
      std::vector<TimedReport> reports = std::vector<TimedReport>(2),
      std::optional<double> validation_loss = std::nullopt) {
    CommittedStep step;
    step.result.step = accounting_.steps() + 1;
    step.result.loss_sum = loss_sum_;
    step.result.valid_tokens = valid_tokens_;
    step.result.grad_norm = 0.5;
    step.result.learning_rate = 0.25;
    step.reports = std::move(reports);
    step.started = now_;
    now_ += absl::Seconds(seconds);
    step.committed = now_;
    for (TimedReport& timed : step.reports) timed.arrived = now_;
    step.validation_loss = validation_loss;
    return accounting_.Commit(step);
  }

  double loss_sum_ = 40;
  int64_t valid_tokens_ = 16;
  MonotonicTime now_ = MonotonicTime::FromZero(absl::Seconds(7));
  Accounting accounting_{/*ranks=*/2, /*batch=*/8, /*sequences=*/20};
};

TEST_F(AccountingTest, AStepsMetricsAreItsOwn) {
  Commit(1);
  Commit(1);
  const v1::StepMetrics third = Commit(4, std::vector<TimedReport>(2), 2.75);
  EXPECT_EQ(third.step(), 3);
  EXPECT_EQ(third.epoch(), 0);  // Sequences 16 to 23 of 20 a pass.
  EXPECT_EQ(third.loss(), 2.5);
  EXPECT_EQ(third.tokens(), 16);
  EXPECT_EQ(third.learning_rate(), 0.25);
  EXPECT_EQ(third.grad_norm(), 0.5);
  EXPECT_EQ(third.step_seconds(), 4);
  EXPECT_EQ(third.tokens_per_second(), 4);
  EXPECT_EQ(third.validation_loss(), 2.75);
  EXPECT_FALSE(third.has_bubble_rate());
  const v1::StepMetrics fourth = Commit(1);
  EXPECT_EQ(fourth.epoch(), 1);
  EXPECT_FALSE(fourth.has_validation_loss());
  EXPECT_EQ(accounting_.steps(), 4);
  EXPECT_EQ(accounting_.tokens(), 64);
  EXPECT_EQ(accounting_.total_seconds(), 7);
  EXPECT_EQ(accounting_.final_loss(), 2.5);
  EXPECT_EQ(accounting_.validation_loss(), 2.75);  // The newest there is.
}

TEST_F(AccountingTest, AStepWithoutAValidTokenHasNoLoss) {
  valid_tokens_ = 0;
  const v1::StepMetrics metrics = Commit(0);
  EXPECT_TRUE(std::isnan(metrics.loss()));
  EXPECT_EQ(metrics.tokens_per_second(), 0);
  EXPECT_THAT(MetricsLine(metrics), HasSubstr("\"loss\":null,"));
  EXPECT_THAT(MetricsLine(metrics), HasSubstr("\"nonfinite\":[\"loss\"]"));
}

// An evaluation that the coordinator heard of late: the step's time begins when
// half of its work is done.
TEST_F(AccountingTest, WorkBeforeTheStepsTimeDoesNotFillIt) {
  const std::vector<TimedReport> reports = {
      Report({{v1::OP_FORWARD, 0, 2}, {v1::OP_BACKWARD, 0, 1}})};
  EXPECT_EQ(Commit(4, reports).bubble_rate(), 0.25);
  EXPECT_EQ(Commit(2, reports).bubble_rate(), 0);
}

TEST_F(AccountingTest, FewStepsAreAllCounted) {
  EXPECT_FALSE(accounting_.step_seconds().has_value());
  for (const int seconds : {10, 9, 1, 2}) Commit(seconds);
  EXPECT_EQ(accounting_.step_seconds()->p50, 5.5);
  EXPECT_EQ(accounting_.step_seconds()->p90, 10);
}

TEST_F(AccountingTest, TheFirstTwoStepsAreLeftOutOfTheMedians) {
  for (const int seconds : {100, 90, 3, 1, 2}) Commit(seconds);
  EXPECT_EQ(accounting_.step_seconds()->p50, 2);
  EXPECT_EQ(accounting_.step_seconds()->p90, 3);
  // They were steps all the same.
  EXPECT_EQ(accounting_.total_seconds(), 196);
}

TEST_F(AccountingTest, PercentilesAreOfTheNearestRank) {
  for (const int seconds : {100, 100, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}) {
    Commit(seconds);
  }
  EXPECT_EQ(accounting_.step_seconds()->p50, 5.5);
  EXPECT_EQ(accounting_.step_seconds()->p90, 9);
  Commit(11);  // Of 11 the tenth, not the ninth.
  EXPECT_EQ(accounting_.step_seconds()->p50, 6);
  EXPECT_EQ(accounting_.step_seconds()->p90, 10);
}

TEST_F(AccountingTest, TheNewest65536StepsAreKept) {
  for (int i = 0; i < 65536; ++i) Commit(1);
  for (int i = 0; i < 32767; ++i) Commit(2);
  EXPECT_EQ(accounting_.step_seconds()->p50, 1);  // 32769 of them.
  Commit(2);
  EXPECT_EQ(accounting_.step_seconds()->p50, 1.5);
  Commit(2);
  EXPECT_EQ(accounting_.step_seconds()->p50, 2);
}

TEST_F(AccountingTest, TheBubbleIsWhatTheBusiestRankDoesNotWork) {
  const v1::StepMetrics metrics =
      Commit(4, {Report({{v1::OP_FORWARD, 0, 1}, {v1::OP_BACKWARD, 0, 2}}),
                 Report({{v1::OP_FORWARD, 1, 1}, {v1::OP_BACKWARD, 1, 1}})});
  EXPECT_NEAR(metrics.bubble_rate(), 0.25, 1e-12);
  EXPECT_NEAR(*accounting_.bubble_rate(), 0.25, 1e-12);
  // A step of which a rank says nothing has none.
  const v1::StepMetrics partial =
      Commit(4, {Report({{v1::OP_FORWARD, 0, 1}}), Report({})});
  EXPECT_FALSE(partial.has_bubble_rate());
  EXPECT_NEAR(*accounting_.bubble_rate(), 0.25, 1e-12);
}

TEST_F(AccountingTest, TimesOfTheWarmUpCountOnlyUntilThereAreOthers) {
  const auto step = [&](int seconds) {
    Commit(8, {Report({{v1::OP_FORWARD, 0, seconds}, {v1::OP_BACKWARD, 0, 1}}),
               Report({{v1::OP_FORWARD, 1, 1}, {v1::OP_BACKWARD, 1, 1}})});
  };
  step(7);
  step(5);
  EXPECT_NEAR(*accounting_.bubble_rate(), 0.125, 1e-12);  // Of 0 and 0.25.
  EXPECT_DOUBLE_EQ(accounting_.MeasuredCosts(2)->stages[0].forward, 6);
  step(3);
  EXPECT_NEAR(*accounting_.bubble_rate(), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(accounting_.MeasuredCosts(2)->stages[0].forward, 3);
}

TEST_F(AccountingTest, ABackwardIsMeasuredInTheFormThatRan) {
  EXPECT_FALSE(accounting_.MeasuredCosts(2).has_value());
  Commit(9, {Report({{v1::OP_FORWARD, 0, 1}, {v1::OP_BACKWARD, 0, 2}}),
             Report({{v1::OP_FORWARD, 1, 3},
                     {v1::OP_BACKWARD_INPUT, 1, 4},
                     {v1::OP_BACKWARD_WEIGHT, 1, 5}})});
  const std::optional<schedule::Costs> costs = accounting_.MeasuredCosts(2);
  ASSERT_TRUE(costs.has_value());
  const schedule::StageTimes& whole = costs->stages[0];
  EXPECT_DOUBLE_EQ(whole.forward, 1);
  EXPECT_DOUBLE_EQ(whole.of(schedule::Op::kBackward), 2);
  const schedule::StageTimes& split = costs->stages[1];
  EXPECT_DOUBLE_EQ(split.forward, 3);
  EXPECT_DOUBLE_EQ(split.of(schedule::Op::kBackwardInput), 4);
  EXPECT_DOUBLE_EQ(split.of(schedule::Op::kBackwardWeight), 5);
  // Stage 2 has not run.
  EXPECT_FALSE(accounting_.MeasuredCosts(3).has_value());
}

TEST_F(AccountingTest, HalfABackwardIsNoMeasurement) {
  Commit(9, {Report({{v1::OP_FORWARD, 0, 1}, {v1::OP_BACKWARD_INPUT, 0, 2}}),
             Report({{v1::OP_FORWARD, 1, 1}, {v1::OP_BACKWARD, 1, 2}})});
  EXPECT_FALSE(accounting_.MeasuredCosts(2).has_value());
}

TEST_F(AccountingTest, TheNewest1024TimesOfAnOperationAreKept) {
  const auto run = [&](int steps, int seconds) {
    for (int i = 0; i < steps; ++i) {
      Commit(9, {Report({{v1::OP_FORWARD, 0, seconds}}),
                 Report({{v1::OP_BACKWARD, 0, 1}})});
    }
  };
  run(2000, 1);
  run(511, 3);
  EXPECT_DOUBLE_EQ(accounting_.MeasuredCosts(1)->stages[0].forward, 1);
  run(2, 3);
  EXPECT_DOUBLE_EQ(accounting_.MeasuredCosts(1)->stages[0].forward, 3);
}

TEST_F(AccountingTest, TotalsAreSumsOfWorkAndPeaksOfMemory) {
  const auto report = [](int64_t busy, int64_t bytes, int in_flight) {
    TimedReport timed;
    timed.report.set_busy_ns(busy);
    timed.report.set_peak_activation_bytes(bytes);
    timed.report.set_peak_in_flight(in_flight);
    return timed;
  };
  Commit(1, {report(10, 700, 2), report(1, 5, 1)});
  Commit(1, {report(20, 600, 3), report(2, 6, 1)});
  const std::vector<RankTotals>& totals = accounting_.totals();
  EXPECT_EQ(totals[0].busy_ns, 30);
  EXPECT_EQ(totals[0].peak_activation_bytes, 700);
  EXPECT_EQ(totals[0].peak_in_flight, 3);
  EXPECT_EQ(totals[1].busy_ns, 3);
  EXPECT_EQ(totals[1].peak_activation_bytes, 6);
  EXPECT_EQ(totals[1].peak_in_flight, 1);
}

TEST_F(AccountingTest, TheSumOfWorkStaysANumber) {
  TimedReport busy;
  busy.report.set_busy_ns(int64_t{1} << 49);
  for (int step = 0; step < 1 << 14; ++step) Commit(1, {busy, {}});
  EXPECT_EQ(accounting_.totals()[0].busy_ns,
            std::numeric_limits<int64_t>::max());
}

TEST_F(AccountingTest, TheFirstThreeAndTheLastFiveFullStepsAreTraced) {
  const auto traced = [&] {
    std::vector<int64_t> steps;
    for (const TracedStep& step : accounting_.traced()) {
      steps.push_back(step.step);
    }
    return steps;
  };
  const auto full = [&] {
    Commit(1, {Report({{v1::OP_FORWARD, 0, 1}}),
               Report({{v1::OP_FORWARD, 1, 1}})});
  };
  for (int i = 0; i < 4; ++i) full();
  EXPECT_THAT(traced(), ElementsAre(1, 2, 3, 4));
  Commit(1);
  for (int i = 0; i < 6; ++i) full();
  EXPECT_THAT(traced(), ElementsAre(1, 2, 3, 7, 8, 9, 10, 11));
}

TEST_F(AccountingTest, ALineOfMetricsIsAsDocumented) {
  EXPECT_EQ(
      MetricsLine(Commit(
          2,
          {Report({{v1::OP_FORWARD, 0, 1}}), Report({{v1::OP_FORWARD, 1, 1}})},
          1.5)),
      "{\"step\":1,\"time\":\"1970-01-01T00:00:00.000000Z\",\"epoch\":0,"
      "\"loss\":2.5,\"tokens\":16,\"lr\":0.25,\"grad_norm\":0.5,"
      "\"step_seconds\":2.0,\"tokens_per_second\":8.0,\"bubble_rate\":0.5,"
      "\"validation_loss\":1.5,\"skipped\":false,\"nonfinite\":[]}\n");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
