#include "coordinator/schedule/placement.h"

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {

Placement LoopPlacement(const RankShape& shape) {
  Placement placement{.ranks = shape.ranks, .rank_of_stage = {}};
  placement.rank_of_stage.reserve(shape.stages());
  for (int s = 0; s < shape.stages(); ++s) {
    placement.rank_of_stage.push_back(s % shape.ranks);
  }
  return placement;
}

Placement VPlacement(const RankShape& shape) {
  const int ranks = shape.ranks;
  Placement placement{.ranks = ranks, .rank_of_stage = {}};
  placement.rank_of_stage.reserve(shape.stages());
  for (int s = 0; s < shape.stages(); ++s) {
    const bool down = (s / ranks) % 2 == 0;
    placement.rank_of_stage.push_back(down ? s % ranks : ranks - 1 - s % ranks);
  }
  return placement;
}

std::vector<int> StagesOfRank(const Placement& placement, int rank) {
  std::vector<int> stages;
  for (int s = 0; s < placement.stages(); ++s) {
    if (placement.rank_of(s) == rank) stages.push_back(s);
  }
  return stages;
}

std::vector<std::vector<int>> StagesOfRanks(const Placement& placement) {
  std::vector<std::vector<int>> stages(placement.ranks);
  for (int s = 0; s < placement.stages(); ++s) {
    stages[placement.rank_of(s)].push_back(s);
  }
  return stages;
}

std::string PlacementName(const Placement& placement) {
  const RankShape shape = {.ranks = placement.ranks,
                           .chunks = placement.stages() / placement.ranks};
  if (placement == LoopPlacement(shape)) return "loop";
  if (placement == VPlacement(shape)) return "V";
  return "other";
}

absl::Status CheckPlacement(const Placement& placement) {
  if (placement.ranks < 1 || placement.stages() < 1 ||
      placement.stages() % placement.ranks != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement: ", placement.stages(), " stages cannot be ",
                     "shared evenly by ", placement.ranks, " ranks"));
  }
  std::vector<int> count(placement.ranks, 0);
  for (int s = 0; s < placement.stages(); ++s) {
    const int rank = placement.rank_of(s);
    if (rank < 0 || rank >= placement.ranks) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: stage ", s, " is on rank ", rank,
                       ", ranks are 0 to ", placement.ranks - 1));
    }
    ++count[rank];
  }
  const int chunks = placement.stages() / placement.ranks;
  for (int r = 0; r < placement.ranks; ++r) {
    if (count[r] != chunks) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: rank ", r, " has ", count[r],
                       " stages, every rank must have ", chunks));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::coordinator::schedule
