// How far the automatic scheduler is from the exact optimum of small steps.
#include <iostream>
#include <random>

#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_schedule.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/auto_settings.h"
#include "tests/coordinator/schedule/exact_oracle.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kSettings = 240;
constexpr double kFarthest = 1.001;

TEST(AutoOptimum, IsReachedInSmallSteps) {
  std::mt19937 random(20261130);
  int unproved = 0;
  for (int i = 0; i < kSettings; ++i) {
    SCOPED_TRACE(i);
    const AutoSetting setting = SmallSetting(i, &random);
    const LoweringOptions& options = setting.choice.options;
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule made,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    ASSERT_OK_AND_ASSIGN(const Optimum optimum,
                         FindOptimum({.micro_batches = setting.micro_batches,
                                      .costs = options.costs,
                                      .memory = options.memory,
                                      .send_buffers = options.send_buffers},
                                     {.upper_bound = made.makespan}));
    if (!optimum.proved) {
      ++unproved;
      std::cout << "setting " << i << " is not proved: auto takes "
                << made.makespan << ", none takes less than "
                << optimum.lower_bound << "\n";
    }
    EXPECT_LE(made.makespan, optimum.makespan * kFarthest);
    EXPECT_GE(optimum.makespan * (1 + 1e-9),
              StepLowerBound(setting.micro_batches, setting.choice.placement,
                             options));
  }
  EXPECT_LE(unproved, kSettings / 20);
}

}  // namespace
}  // namespace penstock::coordinator::schedule
