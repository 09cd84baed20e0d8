#include "coordinator/dispatch/barrier_math.h"

#include <cmath>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

using spec::LrKind;
using spec::LrSchedule;

TEST(LearningRateTest, WarmsUpFromOneStepsShareToTheWholeRate) {
  const LrSchedule schedule{.kind = LrKind::kConstant, .warmup_steps = 4};
  EXPECT_EQ(LearningRate(schedule, 1e-3, 100, 0), 0.25e-3);
  EXPECT_EQ(LearningRate(schedule, 1e-3, 100, 2), 0.75e-3);
  EXPECT_EQ(LearningRate(schedule, 1e-3, 100, 3), 1e-3);
  EXPECT_EQ(LearningRate(schedule, 1e-3, 100, 99), 1e-3);
}

TEST(LearningRateTest, CosineGoesFromTheRateToItsShareAndStays) {
  const LrSchedule schedule{.kind = LrKind::kCosine,
                            .warmup_steps = 10,
                            .decay_steps = 110,
                            .min_ratio = 0.1};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2.0, 500, 10), 2.0);
  // Half way: 0.1 + 0.9 / 2. A quarter: 0.1 + 0.45 * (1 + cos(pi/4)).
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2.0, 500, 60), 2.0 * 0.55);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2.0, 500, 35),
                   2.0 * (0.1 + 0.45 * (1 + std::sqrt(0.5))));
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2.0, 500, 110), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 2.0, 500, 499), 0.2);
}

TEST(LearningRateTest, LinearEndsAtTheJobsStepsWhereNothingElseIsSaid) {
  const LrSchedule schedule{.kind = LrKind::kLinear};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10, 0), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10, 5), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10, 9), 0.1);
}

TEST(LearningRateTest, ADecayNoLongerThanTheWarmUpDividesByNoZero) {
  const LrSchedule schedule{.kind = LrKind::kLinear,
                            .warmup_steps = 5,
                            .decay_steps = 5,
                            .min_ratio = 0.5};
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10, 5), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1.0, 10, 6), 0.5);
}

TEST(GradientNormTest, IsThatOfTheMeanOverTokens) {
  // Two tensors with sums of squares 9 and 16: norm 5, over 10 tokens.
  const std::vector<double> sums = {9, 16};
  EXPECT_DOUBLE_EQ(GradientNorm(sums, 10), 0.5);
}

TEST(GradientNormTest, AddsInTheGivenOrder) {
  // 1e16 + 1 + 1 loses both ones; 1 + 1 + 1e16 does not.
  const std::vector<double> big_first = {1e16, 1, 1};
  const std::vector<double> big_last = {1, 1, 1e16};
  EXPECT_EQ(GradientNorm(big_first, 1), std::sqrt(1e16));
  EXPECT_EQ(GradientNorm(big_last, 1), std::sqrt(1e16 + 2));
}

TEST(GradientScaleTest, ClipsOnlyAboveTheLimit) {
  EXPECT_DOUBLE_EQ(GradientScale(0.5, 1.0, 10), 0.1);
  EXPECT_DOUBLE_EQ(GradientScale(4.0, 1.0, 10), 1.0 / (4.0 + 1e-6) / 10);
  EXPECT_DOUBLE_EQ(GradientScale(4.0, std::nullopt, 10), 0.1);
  EXPECT_DOUBLE_EQ(GradientScale(0.0, 1.0, 4), 0.25);
}

TEST(BiasCorrectionTest, FollowsTheNumberOfUpdates) {
  EXPECT_DOUBLE_EQ(BiasCorrection(0.9, 1), 0.1);
  EXPECT_DOUBLE_EQ(BiasCorrection(0.95, 2), 1 - 0.95 * 0.95);
  EXPECT_EQ(BiasCorrection(0.0, 1), 1.0);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
