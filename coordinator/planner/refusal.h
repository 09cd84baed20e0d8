// Why there is no plan: an absl::Status that also says which key of the job
// file is to blame, as a path ("pipeline.partition[2]"). Whoever parsed the
// file turns the path into FILE:LINE:COL.
#ifndef PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_
#define PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::coordinator::planner {

// InvalidArgument with the path.
absl::Status Refuse(absl::string_view key_path, absl::string_view message);

// ResourceExhausted, reason OUT_OF_MEMORY, with the path.
absl::Status RefuseMemory(absl::string_view key_path,
                          absl::string_view message);

// `status` with the path, replacing one that it had; OK stays OK.
absl::Status WithKeyPath(absl::Status status, absl::string_view key_path);

// The path, or "" where there is none.
std::string KeyPath(const absl::Status& status);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_REFUSAL_H_
