// Schedules for the tests of coordinator/schedule: all that are generated, and
// random correct ones.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXAMPLE_SCHEDULES_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXAMPLE_SCHEDULES_H_

#include <random>
#include <vector>

#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Every schedule that is generated, with the chunks that it has where nothing
// is said, but for those that have no meaning for so many micro-batches.
std::vector<Schedule> EverySchedule(int ranks, int micro_batches);

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
