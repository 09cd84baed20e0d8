// gRPC's deadlines. They are points of the kernel's wall clock, whatever Clock
// the code above has: so the one place that makes them reads that clock.
#ifndef PENSTOCK_COMMON_RPC_DEADLINE_H_
#define PENSTOCK_COMMON_RPC_DEADLINE_H_

#include <chrono>

#include "absl/time/time.h"

namespace penstock::common::rpc {

// `timeout` from now; never for an infinite one.
std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_DEADLINE_H_
