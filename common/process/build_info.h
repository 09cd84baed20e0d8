// What this build is.
#ifndef PENSTOCK_COMMON_PROCESS_BUILD_INFO_H_
#define PENSTOCK_COMMON_PROCESS_BUILD_INFO_H_

namespace penstock::common::process {

// "0.1.0", and the source revision that was built: 12 hexadecimal digits, with
// "-dirty" after them where files differed from it; "unknown" outside of git.
// Both are written at each build (cmake/write_revision.cmake).
extern const char* const kVersion;
extern const char* const kBuild;

// Protocol versions that this build speaks, inclusive.
inline constexpr int kLowestProtocol = 1;
inline constexpr int kHighestProtocol = 1;

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_BUILD_INFO_H_
