// Every way to damage one command of a schedule is refused; a swap that happens
// to give another correct schedule is accepted, and only then.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/coordinator/schedule/order_rules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

std::vector<Schedule> Originals() {
  std::vector<Schedule> all;
  for (const auto& [ranks, micro_batches] :
       {std::pair{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 2}, {3, 5}, {4, 4}}) {
    for (Schedule& schedule : EverySchedule(ranks, micro_batches)) {
      all.push_back(std::move(schedule));
    }
  }
  // Shapes that those leave out: M of dualpipe-v, other chunks.
  const std::pair<const char*, Shape> more[] = {
      {"dualpipe-v", {.ranks = 2, .chunks = 2, .micro_batches = 5}},
      {"interleaved", {.ranks = 2, .chunks = 3, .micro_batches = 4}},
      {"looped-bfs", {.ranks = 2, .chunks = 3, .micro_batches = 2}},
      {"zb1p-interleaved", {.ranks = 2, .chunks = 2, .micro_batches = 4}},
  };
  for (const auto& [name, shape] : more) {
    all.push_back(*Generate(name, shape));
  }
  return all;
}

void ExpectRefused(const Schedule& schedule, const std::string& mutation) {
  const absl::Status status = Verify(schedule, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
      << schedule.name << ", " << mutation << "\n"
      << PrintCsv(schedule);
  EXPECT_LT(status.message().size(), 4096u);
}

// Calls `mutate` for every command of every original.
template <typename Mutate>
void ForEveryCommand(const Mutate& mutate) {
  for (const Schedule& original : Originals()) {
    ASSERT_OK(Verify(original, {})) << PrintCsv(original);
    ASSERT_TRUE(IsCorrect(original));
    for (int r = 0; r < original.ranks(); ++r) {
      for (int p = 0; p < static_cast<int>(original.orders[r].size()); ++p) {
        mutate(original, r, p);
      }
    }
  }
}

TEST(Mutation, ADroppedCommandIsRefused) {
  ForEveryCommand([](Schedule schedule, int r, int p) {
    const std::string what = "dropped " + ToString(schedule.orders[r][p]);
    schedule.orders[r].erase(schedule.orders[r].begin() + p);
    ExpectRefused(schedule, what);
  });
}

TEST(Mutation, ADuplicatedCommandIsRefusedOnEveryRank) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    const Command c = original.orders[r][p];
    for (int target = 0; target < original.ranks(); ++target) {
      Schedule schedule = original;
      schedule.orders[target].push_back(c);
      ExpectRefused(schedule, "appended " + ToString(c));
    }
    Schedule schedule = original;
    schedule.orders[r].insert(schedule.orders[r].begin() + p, c);
    ExpectRefused(schedule, "doubled " + ToString(c));
  });
}

TEST(Mutation, ARetargetedCommandIsRefused) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    for (int stage = -1; stage <= original.stages(); ++stage) {
      if (stage == original.orders[r][p].stage) continue;
      Schedule schedule = original;
      schedule.orders[r][p].stage = stage;
      ExpectRefused(schedule, "retargeted at position " + std::to_string(p));
    }
  });
}

TEST(Mutation, ACommandMovedToAnotherRankIsRefused) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    for (int target = 0; target < original.ranks(); ++target) {
      if (target == r) continue;
      Schedule schedule = original;
      schedule.orders[target].insert(schedule.orders[target].begin(),
                                     schedule.orders[r][p]);
      schedule.orders[r].erase(schedule.orders[r].begin() + p);
      ExpectRefused(schedule, "moved to rank " + std::to_string(target));
    }
  });
}

TEST(Mutation, ARenumberedCommandIsRefused) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    for (int m = -1; m <= original.micro_batches; ++m) {
      if (m == original.orders[r][p].micro_batch) continue;
      Schedule schedule = original;
      schedule.orders[r][p].micro_batch = m;
      ExpectRefused(schedule, "renumbered to " + std::to_string(m));
    }
  });
}

TEST(Mutation, AnotherOperationIsRefused) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kBackwardInput,
                        Op::kBackwardWeight, static_cast<Op>('X')}) {
      if (op == original.orders[r][p].op) continue;
      Schedule schedule = original;
      schedule.orders[r][p].op = op;
      ExpectRefused(schedule, "changed " + ToString(original.orders[r][p]));
    }
  });
}

TEST(Mutation, ASwapIsAcceptedExactlyWhereTheResultIsCorrect) {
  int correct = 0;
  int refused = 0;
  ForEveryCommand([&](const Schedule& original, int r, int p) {
    for (int q = p + 1; q < static_cast<int>(original.orders[r].size()); ++q) {
      Schedule schedule = original;
      std::swap(schedule.orders[r][p], schedule.orders[r][q]);
      const bool expected = IsCorrect(schedule);
      (expected ? correct : refused) += 1;
      const absl::Status status = Verify(schedule, {});
      EXPECT_EQ(status.ok(), expected) << status << "\n" << PrintCsv(schedule);
      const Command& a = original.orders[r][p];
      const Command& b = original.orders[r][q];
      if (a.op == b.op && a.stage == b.stage && a.op != Op::kForward) {
        EXPECT_FALSE(expected) << ToString(a) << " and " << ToString(b);
      }
    }
  });
  EXPECT_GT(correct, 0);
  EXPECT_GT(refused, 1000);
}

TEST(Mutation, SwapsAcrossRanksAreRefused) {
  ForEveryCommand([](const Schedule& original, int r, int p) {
    for (int other = r + 1; other < original.ranks(); ++other) {
      Schedule schedule = original;
      std::swap(schedule.orders[r][p], schedule.orders[other].back());
      ExpectRefused(schedule, "swapped across ranks");
    }
  });
}

// A rank's row cut short, as a truncated file or a non-strict zip would.
TEST(Mutation, ATruncatedRowIsRefused) {
  ForEveryCommand([](Schedule schedule, int r, int p) {
    schedule.orders[r].resize(p);
    ExpectRefused(schedule, "truncated");
  });
}

}  // namespace
}  // namespace penstock::coordinator::schedule
