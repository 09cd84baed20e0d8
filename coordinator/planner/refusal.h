// Why there is no plan: an absl::Status that also says which key of the job
// file is to blame (common/status/key_path.h).
#ifndef PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_
#define PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::coordinator::planner {

// InvalidArgument with the path.
absl::Status Refuse(absl::string_view key_path, absl::string_view message);

// ResourceExhausted, reason OUT_OF_MEMORY, with the path.
absl::Status RefuseMemory(absl::string_view key_path,
                          absl::string_view message);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_
