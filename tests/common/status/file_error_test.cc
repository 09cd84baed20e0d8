#include "common/status/file_error.h"

#include <cerrno>

#include "common/status/error_details.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::status {
namespace {

using ::penstock::testing::StatusIs;

TEST(FileErrorTest, SaysWhatAndWhyWithACodeAndAReason) {
  const struct {
    int error;
    absl::StatusCode code;
    const char* reason;
    const char* message;
  } kTable[] = {
      {ENOSPC, absl::StatusCode::kResourceExhausted, "DISK_FULL",
       "write /run/a: No space left on device"},
      {EDQUOT, absl::StatusCode::kResourceExhausted, "DISK_FULL",
       "write /run/a: Disk quota exceeded"},
      {EFBIG, absl::StatusCode::kResourceExhausted, "DISK_FULL",
       "write /run/a: File too large"},
      {EROFS, absl::StatusCode::kPermissionDenied, "INPUT_NOT_VISIBLE",
       "write /run/a: Read-only file system"},
      {EACCES, absl::StatusCode::kPermissionDenied, "INPUT_NOT_VISIBLE",
       "write /run/a: Permission denied"},
      {ENOENT, absl::StatusCode::kNotFound, "INPUT_NOT_VISIBLE",
       "write /run/a: No such file or directory"},
      {ENOTDIR, absl::StatusCode::kNotFound, "INPUT_NOT_VISIBLE",
       "write /run/a: Not a directory"},
      {EIO, absl::StatusCode::kUnavailable, "INPUT_NOT_VISIBLE",
       "write /run/a: Input/output error"},
  };
  for (const auto& row : kTable) {
    const absl::Status status = FileError(row.error, "write /run/a");
    EXPECT_THAT(status, StatusIs(row.code, row.message));
    EXPECT_EQ(Reason(status), row.reason) << row.error;
  }
}

}  // namespace
}  // namespace penstock::common::status
