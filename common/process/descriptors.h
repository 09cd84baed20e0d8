// How many files and sockets this process may have open. For main.cc only.
#ifndef PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_
#define PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_

#include "absl/status/status.h"

namespace penstock::common::process {

// Below this a process would fail somewhere in the middle, with whatever error
// the call has that was refused a descriptor first.
inline constexpr int kLeastDescriptors = 64;

// Raises the limit to what the system allows; children inherit it.
// ResourceExhausted where that is less than kLeastDescriptors.
absl::Status RaiseDescriptorLimit();

}  // namespace penstock::common::process

#endif  // PENSTOCK_COMMON_PROCESS_DESCRIPTORS_H_
