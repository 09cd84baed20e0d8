// The small files that a user names on the command line.
#ifndef PENSTOCK_CLIENT_INPUT_FILE_H_
#define PENSTOCK_CLIENT_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::client {

inline constexpr int64_t kMaxInputFileBytes = 1 << 20;

// The whole of a regular file; pipes, devices and folders are refused without
// waiting for them. InvalidArgument "WHAT PATH: why" otherwise, also beyond
// kMaxInputFileBytes.
absl::StatusOr<std::string> ReadInputFile(absl::string_view what,
                                          const std::string& path);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_INPUT_FILE_H_
