// What a partition of a model's blocks may be, in the words that users get: of
// the job file's check and of the planner's.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_PARTITION_RULES_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_PARTITION_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace penstock::coordinator::schedule {

struct PartitionFault {
  std::optional<size_t> item;  // nullopt: of the list as a whole.
  std::string message;
};

// Nothing where a model of `blocks` can be cut into so many virtual stages:
// each block, the embedding and the head may be one of its own.
// REQUIRES: stages >= 1.
std::optional<std::string> StagesFault(int64_t stages, int64_t blocks);

// `partition`: blocks of each virtual stage. Every fault: another number of
// entries (then only this), 0 inside, less than 0, or more blocks than there
// are (then no sum), another sum (no block is ever dropped).
// REQUIRES: StagesFault has nothing to say.
std::vector<PartitionFault> PartitionFaults(absl::Span<const int64_t> partition,
                                            int64_t stages, int64_t blocks);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_PARTITION_RULES_H_
