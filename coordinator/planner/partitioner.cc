#include "coordinator/planner/partitioner.h"

#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/planner/refusal.h"
#include "coordinator/schedule/partition_rules.h"

namespace penstock::coordinator::planner {
namespace {

absl::Status CheckStages(int64_t blocks, int stages) {
  std::optional<std::string> fault =
      stages < 1 ? absl::StrCat(stages, " virtual stages, must be at least 1")
                 : schedule::StagesFault(stages, blocks);
  return fault.has_value() ? Refuse("pipeline.stages", *fault)
                           : absl::OkStatus();
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
  const std::vector<schedule::PartitionFault> faults =
      schedule::PartitionFaults(partition, stages, blocks);
  if (faults.empty()) return absl::OkStatus();
  const schedule::PartitionFault& first = faults.front();
  return Refuse(first.item.has_value()
                    ? absl::StrCat("pipeline.partition[", *first.item, "]")
                    : "pipeline.partition",
                first.message);
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
