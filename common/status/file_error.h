// A failed file operation as a status, with the reason that a job fails with.
//
// It is a fault of the machine's storage or of who set it up, never of
// Penstock's: a full disk or quota, or a file that may not become larger, is
// DISK_FULL; whatever else keeps a process from reading an input or writing a
// result is INPUT_NOT_VISIBLE.
#ifndef PENSTOCK_COMMON_STATUS_FILE_ERROR_H_
#define PENSTOCK_COMMON_STATUS_FILE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::common::status {

// "`what`: " and errno's text; `what` names the operation and the path.
// ResourceExhausted: full. PermissionDenied: also a read-only file system.
// NotFound: also a parent that is no folder. Unavailable: all others.
// REQUIRES: error != 0.
absl::Status FileError(int error, absl::string_view what);

}  // namespace penstock::common::status

#endif  // PENSTOCK_COMMON_STATUS_FILE_ERROR_H_
