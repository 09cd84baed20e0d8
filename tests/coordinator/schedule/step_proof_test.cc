#include "tests/coordinator/schedule/step_proof.h"

#include <cstdint>
#include <random>

#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_schedule.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/auto_settings.h"
#include "tests/coordinator/schedule/exact_oracle.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

TEST(StepProof, NeverRefusesTheOptimumAndProvesNearlyAllOfIt) {
  std::mt19937 random(1);
  int compared = 0;
  int close = 0;
  for (int i = 0; i < 240; ++i) {
    SCOPED_TRACE(i);
    AutoSetting setting = SmallSetting(i, &random);
    Memory& memory = setting.choice.options.memory;
    if (memory.stages[0].held_until_weight >
        memory.stages[0].held_until_input) {
      continue;  // A B may be better there.
    }
    setting.choice.options.send_buffers = 1 + i % 9 / 8;
    const OracleSetting oracle = OracleSettingOf(setting);
    ASSERT_OK_AND_ASSIGN(const Optimum optimum, FindOptimum(oracle, {}));
    if (!optimum.proved) continue;
    ++compared;
    StepProof proof(oracle);
    EXPECT_FALSE(proof.NoneTakesAtMost(optimum.makespan * (1 + 1e-9)));
    close += proof.NoneTakesAtMost(optimum.makespan * 0.995);
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(close, compared * 9 / 10);
}

// With long transfers that need one send buffer the lower bound is not
// reached: what is left is mostly not the scheduler's.
TEST(StepProof, ShowsThatLargeStepsWithLongTransfersAreNearTheOptimum) {
  std::mt19937 random(20261130);
  int looked_at = 0;
  int beyond_bound = 0;
  int unproved = 0;
  for (int i = 0; i < 60; ++i) {
    const AutoSetting setting = LargeSetting(StageSpread::kUnlike, 1, &random);
    if (setting.micro_batches > 50) continue;
    ++looked_at;
    ASSERT_OK_AND_ASSIGN(
        const AutoSchedule made,
        MakeAutoSchedule(setting.micro_batches, {setting.choice}));
    const double near = made.makespan / 1.005;
    if (near <= StepLowerBound(setting.micro_batches, setting.choice.placement,
                               setting.choice.options)) {
      continue;
    }
    ++beyond_bound;
    unproved += !StepProof(OracleSettingOf(setting)).NoneTakesAtMost(near);
  }
  EXPECT_GT(looked_at, 20);
  EXPECT_GT(beyond_bound, 0);
  EXPECT_LE(unproved, 1);
}

}  // namespace
}  // namespace penstock::coordinator::schedule
