// The optimal step of small pipelines, found by branch and bound: what the
// automatic scheduler is measured with. It shares no code with it.
//
// One stage a rank (loop placement, v = 1), orders of F, I, W and B, unlimited
// slots, the rule of coordinator/schedule/lowered_program.h. The only claim
// that it rests on: micro-batches are identical, so that an optimal order has
// the F, the I and the W of each stage in ascending order. (A B takes less
// memory than I and W in its place where what is held until W is the larger.)
//
// Schedules are built in the order of time (Giffler and Thompson 1960: on the
// rank whose next command could end first, that command or one that starts
// before that end comes next). A node is given up if
//   - a node before it led to nothing that had the same commands done, none of
//     them later;
//   - or the commands cannot all be on time for a step shorter than the best
//     known. That is decided by a longest path over all rows of (F, I, W
//     counts) of each rank alone, memory included, with earliest starts and
//     latest ends that ranks pass on to each other until nothing changes.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// A rank's own places: micro-batches from F to W, and of them from I to W.
struct OraclePlaces {
  int slots = 1;
  int held = 0;
};

struct OracleSetting {
  int micro_batches = 1;  // At most kOracleMicroBatches.
  Costs costs;    // An entry a rank, at most kOracleRanks; of `bytes` nothing.
  Memory memory;  // Stages and limits; of `slot` nothing.
  std::vector<OraclePlaces> places;  // In place of limits; an entry a rank.
  int send_buffers = 1;              // At least 1.
};
inline constexpr int kOracleRanks = 4;
inline constexpr int kOracleMicroBatches = 15;

struct OracleSearch {
  // A step that is known to be possible: only shorter ones are looked for.
  double upper_bound = std::numeric_limits<double>::infinity();
  int64_t most_nodes = 1'000'000;
};

struct Optimum {
  // The shortest step found, or the caller's bound.
  double makespan = 0;
  // Whether no step is shorter than makespan * (1 - kOracleTolerance).
  bool proved = false;
  // No step is shorter than this: makespan where proved.
  double lower_bound = 0;
  // Its order; nothing where none is shorter than the caller's bound.
  std::optional<Schedule> order;
  int64_t nodes = 0;
};
inline constexpr double kOracleTolerance = 1e-9;

// InvalidArgument: a setting out of range, a B shorter than its I or W.
// ResourceExhausted: a limit below one micro-batch.
absl::StatusOr<Optimum> FindOptimum(const OracleSetting& setting,
                                    const OracleSearch& search);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_H_
