// Ranks on one machine, or in one control group, share its memory: each alone
// fits, all of them may not.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_SHARED_MEMORY_H_
#define PENSTOCK_COORDINATOR_DISPATCH_SHARED_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/dispatch/assembly.h"

namespace penstock::coordinator::dispatch {

// `needs`: bytes by rank of the crew. ResourceExhausted, reason OUT_OF_MEMORY,
// at pipeline.memory_limit (planner/refusal.h): names host, group, stages, what
// they need together, and the limit. A stage that told no limit has none.
absl::Status CheckSharedMemory(const Crew& crew,
                               const std::vector<int64_t>& needs);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_SHARED_MEMORY_H_
