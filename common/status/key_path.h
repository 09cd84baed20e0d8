// Which key of the job file an error is about, on an absl::Status.
//
// Planner and stages know the key, as "pipeline.partition[2]", but no file:
// whoever parsed it turns the path into FILE:LINE:COL. It travels as a payload
// of the status, so that nobody looks for it in a message.
#ifndef PENSTOCK_COMMON_STATUS_KEY_PATH_H_
#define PENSTOCK_COMMON_STATUS_KEY_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::common::status {

// `status` with the path, replacing one that it had; OK stays OK.
absl::Status WithKeyPath(absl::Status status, absl::string_view key_path);

// The path, or "" where there is none.
std::string KeyPath(const absl::Status& status);

}  // namespace penstock::common::status

#endif  // PENSTOCK_COMMON_STATUS_KEY_PATH_H_
