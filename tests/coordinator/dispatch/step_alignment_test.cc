#include "coordinator/dispatch/step_alignment.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/simulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;
using ::testing::ElementsAre;

MonotonicTime At(absl::Duration since_zero) {
  return MonotonicTime::FromZero(since_zero);
}

void AddOp(v1::StepReport& report, v1::Op op, int stage, int micro_batch,
           absl::Duration start, absl::Duration end) {
  v1::OpTiming& timing = *report.add_timings();
  timing.set_op(op);
  timing.set_stage(stage);
  timing.set_micro_batch(micro_batch);
  timing.set_start_ns(absl::ToInt64Nanoseconds(start));
  timing.set_end_ns(absl::ToInt64Nanoseconds(end));
}

// Two ranks, one micro-batch: 0F 0..10 ms, 1F 12..20, 1B 20..30, 0B 34..40.
std::vector<TimedReport> OneMicroBatch(v1::Op backward = v1::OP_BACKWARD) {
  std::vector<TimedReport> reports(2);
  const auto ms = [](int n) { return absl::Milliseconds(n); };
  AddOp(reports[0].report, v1::OP_FORWARD, 0, 0, ms(0), ms(10));
  AddOp(reports[0].report, backward, 0, 0, ms(34), ms(40));
  AddOp(reports[1].report, v1::OP_FORWARD, 1, 0, ms(0), ms(8));
  AddOp(reports[1].report, backward, 1, 0, ms(8), ms(18));
  reports[0].report.set_span_ns(40000000);
  reports[1].report.set_span_ns(18000000);
  reports[0].arrived = At(ms(1040));
  reports[1].arrived = At(ms(1030));
  return reports;
}

TEST(StepAlignmentTest, TheArrivalDecidesWhereTheMessagesAllowIt) {
  EXPECT_THAT(
      AlignStarts(OneMicroBatch()),
      ElementsAre(At(absl::Milliseconds(1000)), At(absl::Milliseconds(1012))));
}

TEST(StepAlignmentTest, AReportThatCameLateIsMovedBeforeItsGradientsUse) {
  std::vector<TimedReport> reports = OneMicroBatch();
  reports[1].arrived += absl::Seconds(1);
  // 1B ends when 0B starts, at 1034.
  EXPECT_EQ(AlignStarts(reports)[1], At(absl::Milliseconds(1016)));
}

TEST(StepAlignmentTest, ALateReportOfTheProducerMovesTheConsumerBehindIt) {
  std::vector<TimedReport> reports = OneMicroBatch();
  reports[0].arrived += absl::Milliseconds(500);
  // 1F starts when 0F ends, at 1510.
  EXPECT_EQ(AlignStarts(reports)[1], At(absl::Milliseconds(1510)));
}

TEST(StepAlignmentTest, TheInputGradientOfASplitBackwardIsWhatIsSent) {
  std::vector<TimedReport> reports = OneMicroBatch(v1::OP_BACKWARD_INPUT);
  AddOp(reports[1].report, v1::OP_BACKWARD_WEIGHT, 1, 0, absl::Milliseconds(18),
        absl::Milliseconds(60));
  reports[1].arrived += absl::Seconds(1);
  EXPECT_EQ(AlignStarts(reports)[1], At(absl::Milliseconds(1016)));
}

TEST(StepAlignmentTest, MeasurementsThatContradictEachOtherMeetHalfway) {
  std::vector<TimedReport> reports = OneMicroBatch();
  // Too early by 4 ms for what rank 1 needed: 1F to 1B take 18 of 14 ms.
  reports[0].report.mutable_timings(1)->set_start_ns(24000000);
  EXPECT_EQ(AlignStarts(reports)[1], At(absl::Milliseconds(1008)));
}

TEST(StepAlignmentTest, WithoutTimingsTheArrivalIsAllThereIs) {
  std::vector<TimedReport> reports(2);
  reports[0].arrived = At(absl::Seconds(3));
  reports[1].arrived = At(absl::Seconds(2));
  EXPECT_THAT(AlignStarts(reports),
              ElementsAre(At(absl::Seconds(3)), At(absl::Seconds(2))));
}

// What a simulated step measures, with every report held up for a random time:
// every message still goes forward in time.
class SkewedArrivalsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SkewedArrivalsTest, NoCommandStartsBeforeItsInputWasMade) {
  constexpr int kRanks = 4, kMicroBatches = 8;
  ASSERT_OK_AND_ASSIGN(
      const schedule::Schedule order,
      schedule::Generate(GetParam(),
                         {.ranks = kRanks, .micro_batches = kMicroBatches}));
  ASSERT_OK_AND_ASSIGN(const schedule::LoweredProgram program,
                       schedule::Lower(order, {}));
  schedule::Costs costs;
  for (int stage = 0; stage < kRanks; ++stage) {
    costs.stages.push_back({.forward = 1.0 + 0.1 * stage,
                            .backward_input = 1,
                            .backward_weight = 1,
                            .backward = 2.0 - 0.2 * stage});
  }
  ASSERT_OK_AND_ASSIGN(const schedule::Simulation simulation,
                       schedule::Simulate(program, costs));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<TimedReport> reports(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      v1::StepReport& report = reports[rank].report;
      double first = -1, last = 0;
      for (size_t i = 0; i < program.steps[rank].size(); ++i) {
        const schedule::LoweredStep& step = program.steps[rank][i];
        if (step.kind != schedule::StepKind::kCompute) continue;
        const auto& times = simulation.timeline[rank][i];
        if (first < 0) first = times.start;
        last = times.end;
        AddOp(report,
              step.command.op == schedule::Op::kForward ? v1::OP_FORWARD
                                                        : v1::OP_BACKWARD,
              step.command.stage, step.command.micro_batch,
              absl::Milliseconds(times.start - first),
              absl::Milliseconds(times.end - first));
      }
      report.set_span_ns(
          absl::ToInt64Nanoseconds(absl::Milliseconds(last - first)));
      reports[rank].arrived = At(
          absl::Milliseconds(last) +
          absl::Microseconds(std::uniform_int_distribution(0, 30000)(random)));
    }
    const std::vector<MonotonicTime> starts = AlignStarts(reports);
    std::map<std::tuple<v1::Op, int, int>,
             std::pair<MonotonicTime, MonotonicTime>>
        ran;
    for (int rank = 0; rank < kRanks; ++rank) {
      for (const v1::OpTiming& timing : reports[rank].report.timings()) {
        ran[{timing.op(), timing.stage(), timing.micro_batch()}] = {
            starts[rank] + absl::Nanoseconds(timing.start_ns()),
            starts[rank] + absl::Nanoseconds(timing.end_ns())};
      }
    }
    // Nanoseconds are cut off where times are measured.
    const absl::Duration slack = absl::Nanoseconds(10);
    for (int stage = 0; stage + 1 < kRanks; ++stage) {
      for (int m = 0; m < kMicroBatches; ++m) {
        EXPECT_GE((ran[{v1::OP_FORWARD, stage + 1, m}].first) + slack,
                  (ran[{v1::OP_FORWARD, stage, m}].second))
            << "activation of micro-batch " << m << " to " << stage + 1;
        EXPECT_GE((ran[{v1::OP_BACKWARD, stage, m}].first) + slack,
                  (ran[{v1::OP_BACKWARD, stage + 1, m}].second))
            << "gradient of micro-batch " << m << " to " << stage;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, SkewedArrivalsTest,
                         ::testing::Values("naive", "gpipe", "1f1b"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name == "1f1b" ? "OneFOneB" : name;
                         });

}  // namespace
}  // namespace penstock::coordinator::dispatch
