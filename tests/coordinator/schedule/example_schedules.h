// Schedules that the tests of coordinator/schedule need beside the shipped
// generators: hand-made shapes with chunks, V placement and split backward, and
// random correct ones.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXAMPLE_SCHEDULES_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXAMPLE_SCHEDULES_H_

#include <random>
#include <vector>

#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// All forwards chunk by chunk, then all backwards (looped breadth-first).
Schedule LoopedBfs(const Shape& shape);

// ZB1P with chunks: its warm-up, split backward, W of op i once
// i - warm-up >= rank.
Schedule InterleavedZb1p(const Shape& shape);

// ZB-H2: min(2(K - r) - 1, M) forwards, then I(i), W(i - 2r), F in turn.
Schedule ZbH2(const Shape& shape);

// ZB-V-like order on the V placement: a correct order found by always running
// the deepest command that is ready. v = 2.
Schedule GreedyV(const Shape& shape);

// A random correct schedule: random placement, forwards in one random order,
// each micro-batch's backward split or not, ranks advanced at random.
struct RandomOptions {
  bool shuffle_forwards = false;
  bool shuffle_placement = false;
};
Schedule RandomSchedule(const Shape& shape, const RandomOptions& options,
                        std::mt19937* random);

// Times that are multiples of 1/8, so that sums are exact.
double RandomEighths(std::mt19937* random, int least, int most);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXAMPLE_SCHEDULES_H_
