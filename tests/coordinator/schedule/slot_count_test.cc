// The search for a number of slots, against trying each.
#include "coordinator/schedule/slot_count.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "coordinator/schedule/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

bool Suffice(int n, const std::vector<Use>& uses) {
  for (const Use& a : uses) {
    for (const Use& b : uses) {
      const bool together = a.from < b.from && b.from <= a.to;
      if (together && a.number % n == b.number % n) return false;
    }
  }
  return true;
}

TEST(SlotCount, IsTheLeastThatSuffices) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int count = 1 + static_cast<int>(random() % 40);
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (round % 3 > 0) std::shuffle(numbers.begin(), numbers.end(), random);
    std::vector<Use> uses;
    for (int i = 0; i < count; ++i) {
      const int length = static_cast<int>(random() % (round % 2 > 0 ? 5 : 30));
      uses.push_back({.number = numbers[i], .from = i, .to = i + length});
    }
    int least = 1 + static_cast<int>(random() % 3);
    const int found = LeastSlots(uses, {.least = least, .most = count + 3});
    while (!Suffice(least, uses)) ++least;
    EXPECT_EQ(found, least) << "round " << round;
  }
}

TEST(SlotCount, StaysInItsRange) {
  // Both at one time: two slots, whatever the numbers.
  const std::vector<Use> uses = {{0, 0, 2}, {4, 1, 3}};
  EXPECT_EQ(MostAtOnce(uses), 2);
  EXPECT_EQ(LeastSlots(uses, {.least = 1, .most = 9}), 3);
  EXPECT_EQ(LeastSlots(uses, {.least = 5, .most = 9}), 5);
  EXPECT_EQ(LeastSlots(uses, {.least = 1, .most = 2}), 2);
  EXPECT_EQ(LeastSlots({}, {.least = 1, .most = 4}), 1);
}

// The last micro-batch is in flight while all others pass, so that it meets
// each of them in some count of slots: the square of a million is a day's work.
TEST(SlotCount, AnOrderThatMeetsItselfEverywhereIsLoweredInAFewPasses) {
  constexpr int kMicroBatches = 1 << 20;
  Schedule schedule{.name = "worst",
                    .placement = LoopPlacement({}),
                    .micro_batches = kMicroBatches};
  std::vector<Command>& order = schedule.orders.emplace_back();
  order.push_back({Op::kForward, 0, kMicroBatches - 1});
  for (int m = 0; m + 1 < kMicroBatches; ++m) {
    order.push_back({Op::kForward, 0, m});
    order.push_back({Op::kBackward, 0, m});
  }
  order.push_back({Op::kBackward, 0, kMicroBatches - 1});
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, Lower(schedule, {}));
  EXPECT_EQ(program.stages[0].peak_in_flight, 2);
  EXPECT_EQ(program.stages[0].slots, kMicroBatches);
}

}  // namespace
}  // namespace penstock::coordinator::schedule
