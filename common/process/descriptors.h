// The standard descriptors of this process, and how many files and sockets it
// may have open. For main.cc only.
#ifndef PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_
#define PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_

#include "absl/status/status.h"

namespace penstock::common::process {

// Opens those of descriptors 0 to 2 that are closed, so that no file or socket
// gets such a number: output would go there, and a child's descriptors over it.
// Reading and writing them fails as before. Call first of all. Unavailable
// where there is no /dev/null.
absl::Status OpenStandardDescriptors();

// Below this a process would fail somewhere in the middle, with whatever error
// the call has that was refused a descriptor first.
inline constexpr int kLeastDescriptors = 64;

// Raises the limit to what the system allows; children inherit it.
// ResourceExhausted where that is less than kLeastDescriptors.
absl::Status RaiseDescriptorLimit();

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_
