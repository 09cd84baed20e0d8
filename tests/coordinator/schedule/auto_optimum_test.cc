// How far the automatic scheduler is from the exact optimum of small steps.
#include <algorithm>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_problem.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/auto_search.h"
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

// The best step over all ways to divide each rank's memory between slots and
// places for what waits for W.
double OptimumOfOwnPlaces(const AutoProblem& problem,
                          const LoweringOptions& options, double known) {
  OracleSetting setting{.micro_batches = problem.micro_batches,
                        .costs = options.costs,
                        .memory = options.memory,
                        .places = std::vector<OraclePlaces>(problem.ranks),
                        .send_buffers = options.send_buffers};
  setting.memory.limits.clear();
  std::vector<int> slots(problem.ranks, 1);  // Counted up like digits.
  for (int r = 0; r < problem.ranks;) {
    bool fits = true;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      const StageBytes& bytes = problem.held[rank];
      const int64_t left =
          problem.budget[rank] - slots[rank] * bytes.held_until_input;
      fits &= left >= 0;
      const int64_t held =
          left / (bytes.held_until_weight - bytes.held_until_input);
      setting.places[rank] = {.slots = slots[rank],
                              .held = static_cast<int>(std::min<int64_t>(
                                  held, problem.micro_batches))};
    }
    if (fits) {
      const absl::StatusOr<Optimum> optimum =
          FindOptimum(setting, {.upper_bound = known});
      EXPECT_OK(optimum.status());
      EXPECT_TRUE(optimum->proved);
      known = std::min(known, optimum->makespan);
    }
    for (r = 0; r < problem.ranks && slots[r] == problem.micro_batches; ++r) {
      slots[r] = 1;
    }
    if (r < problem.ranks) ++slots[r];
  }
  return known;
}

TEST(AutoOptimum, IsReachedByTheSearchWithOwnPlaces) {
  std::mt19937 random(3);
  for (int i = 0; i < kSettings; ++i) {
    SCOPED_TRACE(i);
    const int ranks = 2 + i % 2;
    AutoSetting setting =
        RandomSetting(ranks == 2 ? 6 : 4, LoopPlacement({.ranks = ranks}),
                      {.spread = StageSpread::kUnlike,
                       .longest_transfer = i % 3 == 0 ? 0.0 : 1.0},
                      &random);
    LoweringOptions& options = setting.choice.options;
    options.memory = {.places = Places::kOwn};
    for (int s = 0; s < ranks; ++s) {
      const auto size = static_cast<int64_t>(1 + random() % 6);
      const auto growth = static_cast<int64_t>(1 + random() % 6);
      options.memory.stages.push_back(
          {.held_until_input = size, .held_until_weight = size + growth});
      options.memory.limits.push_back(
          size + static_cast<int64_t>(random() % (6 * (size + growth))));
    }
    const AutoProblem problem = MakeAutoProblem(
        setting.micro_batches, setting.choice.placement, options);
    const double bound = StepLowerBound(setting.micro_batches,
                                        setting.choice.placement, options);
    const std::optional<FoundOrder> found =
        SearchOrder(problem, {.bound = bound,
                              .known = 1e18,
                              .list_work = 400'000,
                              .beam_work = 20'000'000});
    ASSERT_TRUE(found.has_value());
    const double optimum =
        OptimumOfOwnPlaces(problem, options, found->makespan);
    EXPECT_LE(found->makespan, optimum * kFarthest);
    EXPECT_GE(optimum * (1 + 1e-9), bound);
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
