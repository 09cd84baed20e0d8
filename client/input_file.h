// The small files that a user names on the command line.
#ifndef PENSTOCK_CLIENT_INPUT_FILE_H_
#define PENSTOCK_CLIENT_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::client {

// As much as the coordinator takes (tests/integration/file_limits_test.cc).
inline constexpr int64_t kMaxJobFileBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxScheduleFileBytes = int64_t{45} << 20;

// The whole of a regular file; pipes, devices and folders are refused without
// waiting for them. InvalidArgument otherwise, "job file PATH: why" or
// "schedule file PATH: why", also of a file above the limit, which it names.
absl::StatusOr<std::string> ReadJobFile(const std::string& path);
absl::StatusOr<std::string> ReadScheduleFile(const std::string& path);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_INPUT_FILE_H_
