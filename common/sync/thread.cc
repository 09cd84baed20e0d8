#include "common/sync/thread.h"

#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"

namespace penstock::common::sync {

absl::StatusOr<std::thread> StartThread(std::function<void()> run) {
  // The standard library says it by an exception, which ends here.
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return status::WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "the system refuses another thread (", error.code().message(),
            "): free memory there, or raise its limits of threads (ulimit -u, "
            "the control group's pids.max)")),
        status::kReasonOutOfMemory);
  }
}

}  // namespace penstock::common::sync
