#include "coordinator/planner/refusal.h"

#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "common/status/reasons.h"

namespace penstock::coordinator::planner {

using common::status::WithKeyPath;

absl::Status Refuse(absl::string_view key_path, absl::string_view message) {
  return WithKeyPath(absl::InvalidArgumentError(message), key_path);
}

absl::Status RefuseMemory(absl::string_view key_path,
                          absl::string_view message) {
  return WithKeyPath(
      common::status::WithReason(absl::ResourceExhaustedError(message),
                                 common::status::kReasonOutOfMemory),
      key_path);
}

}  // namespace penstock::coordinator::planner
