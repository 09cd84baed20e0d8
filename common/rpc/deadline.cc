#include "common/rpc/deadline.h"

#include "absl/time/clock.h"

namespace penstock::common::rpc {

std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  // ToChronoTime() saturates; gRPC takes the clock's last point for never.
  return absl::ToChronoTime(absl::Now() + timeout);
}

}  // namespace penstock::common::rpc
