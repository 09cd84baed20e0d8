#include "common/status/file_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"

namespace penstock::common::status {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:  // Of the process (ulimit -f) or the file system.
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status FileError(int error, absl::string_view what) {
  const absl::StatusCode code = CodeOf(error);
  return WithReason(
      absl::Status(code, absl::StrCat(what, ": ",
                                      std::generic_category().message(error))),
      code == absl::StatusCode::kResourceExhausted ? kReasonDiskFull
                                                   : kReasonInputNotVisible);
}

}  // namespace penstock::common::status
