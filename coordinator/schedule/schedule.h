// A pipeline schedule: for each rank the order of its commands in one step.
// It says nothing of messages or buffers; lowering adds those. A Schedule is a
// plain value that may hold anything a user wrote: trust it only after Verify
// (verifier.h).
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_SCHEDULE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/instruction.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// The size of a pipeline, as generators take it.
struct Shape {
  int ranks = 1;          // K
  int chunks = 1;         // v, virtual stages a rank
  int micro_batches = 1;  // M
};

// Ranks, and stage-micro-batch pairs, that a step may have: what is generated,
// proved and simulated in a few seconds of one core (2 s in all for 1f1b on 32
// ranks with 32768 micro-batches), which is what a call may take.
inline constexpr int kMaxRanks = 4096;
inline constexpr int64_t kMaxCells = int64_t{1} << 20;

// InvalidArgument unless all are positive, K is at most kMaxRanks and K*v*M at
// most kMaxCells; `name` is the schedule's.
absl::Status CheckShape(absl::string_view name, const Shape& shape);

// Also InvalidArgument where the schedule always has `chunks` a rank and
// shape.chunks says otherwise.
absl::Status CheckShapeOfChunks(absl::string_view name, const Shape& shape,
                                int chunks);

struct Schedule {
  std::string name;  // "1f1b", or the file that it was read from.
  Placement placement;
  int micro_batches = 1;                     // M
  std::vector<std::vector<Command>> orders;  // (rank, position)

  int ranks() const { return placement.ranks; }      // K
  int stages() const { return placement.stages(); }  // S = K * v
  int chunks() const { return stages() / ranks(); }  // v
  RankShape rank_shape() const {
    return {.ranks = ranks(), .chunks = chunks()};
  }
};

// What a generator fills: every rank has an order without commands.
Schedule EmptySchedule(absl::string_view name, Placement placement,
                       int micro_batches);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_SCHEDULE_H_
