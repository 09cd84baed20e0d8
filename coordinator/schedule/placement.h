// Which rank holds which virtual stage.
//
//   loop: stage s on rank s mod K.
//   V:    stages go down the ranks and back up, so with v = 2 stages s and
//         2K - 1 - s are on one rank (and so on for every further chunk).
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_PLACEMENT_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::coordinator::schedule {

// A map from stages to ranks. Any map with the same number of stages on each
// rank is legal; the two above are what the generators use.
struct Placement {
  int ranks = 1;                         // K
  std::vector<int> rank_of_stage = {0};  // One entry a stage; S = its size.

  int stages() const { return static_cast<int>(rank_of_stage.size()); }
  int rank_of(int stage) const { return rank_of_stage[stage]; }
  // Whether what one of the two makes is used on the rank that made it.
  bool same_rank(int stage_a, int stage_b) const {
    return rank_of_stage[stage_a] == rank_of_stage[stage_b];
  }

  friend bool operator==(const Placement& a, const Placement& b) {
    return a.ranks == b.ranks && a.rank_of_stage == b.rank_of_stage;
  }
};

// Ranks with the same number of stages each. REQUIRES: both at least 1.
struct RankShape {
  int ranks = 1;   // K
  int chunks = 1;  // v
  int stages() const { return ranks * chunks; }
};
Placement LoopPlacement(const RankShape& shape);
Placement VPlacement(const RankShape& shape);

// The stages of `rank`, ascending: its chunks 0, 1, ...
std::vector<int> StagesOfRank(const Placement& placement, int rank);
// The same of every rank, without going through all stages for each.
std::vector<std::vector<int>> StagesOfRanks(const Placement& placement);

// "loop", "V" or "other".
std::string PlacementName(const Placement& placement);

// InvalidArgument unless every stage is on a rank that exists and every rank
// has the same number of stages, at least one.
absl::Status CheckPlacement(const Placement& placement);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_PLACEMENT_H_
