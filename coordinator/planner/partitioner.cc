#include "coordinator/planner/partitioner.h"

#include <numeric>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/planner/refusal.h"

namespace penstock::coordinator::planner {
namespace {

absl::Status CheckStages(int64_t blocks, int stages) {
  if (stages >= 1 && stages <= blocks + 2) return absl::OkStatus();
  return Refuse("pipeline.stages",
                absl::StrCat(stages, " virtual stages; a model of ", blocks,
                             " blocks can be cut into 1 to ", blocks + 2,
                             " (each block, the embedding and the head)"));
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> BalancedPartition(const ModelCosts& costs,
                                                       int64_t blocks,
                                                       int stages) {
  if (absl::Status status = CheckStages(blocks, stages); !status.ok()) {
    return status;
  }
  // Counts decide, not running sums, so that equal stages compare equal.
  const double block = costs.block.total();
  const auto cost = [&](int stage, int64_t count) {
    return (stage == 0 ? costs.embedding.total() : 0) +
           (stage == stages - 1 ? costs.head.total() : 0) +
           static_cast<double>(count) * block;
  };
  std::vector<int64_t> partition(stages, 0);
  int64_t left = blocks;
  for (int stage = 1; stage + 1 < stages; ++stage) {
    partition[stage] = 1;
    --left;
  }
  // Cheapest on top; of equal ones the later stage.
  using Entry = std::pair<double, int>;
  const auto worse = [](const Entry& a, const Entry& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  std::priority_queue<Entry, std::vector<Entry>, decltype(worse)> queue(worse);
  for (int stage = 0; stage < stages; ++stage) {
    queue.push({cost(stage, partition[stage]), stage});
  }
  for (; left > 0; --left) {
    const int stage = queue.top().second;
    queue.pop();
    ++partition[stage];
    queue.push({cost(stage, partition[stage]), stage});
  }
  return partition;
}

absl::Status CheckPartition(absl::Span<const int64_t> partition, int64_t blocks,
                            int stages) {
  if (absl::Status status = CheckStages(blocks, stages); !status.ok()) {
    return status;
  }
  if (static_cast<int>(partition.size()) != stages) {
    return Refuse("pipeline.partition",
                  absl::StrCat("has ", partition.size(), " entries for ",
                               stages, " virtual stages"));
  }
  for (int stage = 0; stage < stages; ++stage) {
    const bool inside = stage > 0 && stage + 1 < stages;
    if (partition[stage] < 0 || (inside && partition[stage] == 0)) {
      return Refuse(absl::StrCat("pipeline.partition[", stage, "]"),
                    absl::StrCat(partition[stage],
                                 " blocks; only the first and the last "
                                 "virtual stage may have 0"));
    }
    if (partition[stage] > blocks) {  // And no overflow of the sum below.
      return Refuse(
          absl::StrCat("pipeline.partition[", stage, "]"),
          absl::StrCat(partition[stage], " blocks; the model has ", blocks));
    }
  }
  const int64_t sum =
      std::accumulate(partition.begin(), partition.end(), int64_t{0});
  if (sum != blocks) {
    return Refuse("pipeline.partition",
                  absl::StrCat("[", absl::StrJoin(partition, ", "), "] holds ",
                               sum, " blocks; the model has ", blocks));
  }
  return absl::OkStatus();
}

std::vector<StageLayers> LayersOfStages(absl::Span<const int64_t> partition) {
  std::vector<StageLayers> stages;
  int64_t next = 0;
  for (size_t stage = 0; stage < partition.size(); ++stage) {
    stages.push_back({.first_block = next,
                      .end_block = next + partition[stage],
                      .embedding = stage == 0,
                      .head = stage + 1 == partition.size()});
    next += partition[stage];
  }
  return stages;
}

}  // namespace penstock::coordinator::planner
