// Context and machine-readable reasons on an absl::Status.
//
// A reason is one of the upper-case words that the API publishes (STAGE_LOST,
// INPUT_NOT_VISIBLE, ...); it travels as a payload of the status, so that code
// decides on the reason and never on a message. common/rpc turns it into
// google.rpc.ErrorInfo and back.
#ifndef PENSTOCK_COMMON_STATUS_ERROR_DETAILS_H_
#define PENSTOCK_COMMON_STATUS_ERROR_DETAILS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock::common::status {

// The same status with "`context`: " before its message; payloads stay.
// An OK status is returned unchanged.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// The same status carrying `reason`; replaces a reason it had.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// The reason, or "" where there is none.
std::string Reason(const absl::Status& status);

// The same status saying that what stands in the way now may be gone after
// `delay`; travels as google.rpc.RetryInfo. REQUIRES: finite, not negative.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// That delay, or nullopt where there is none.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace penstock::common::status

#endif  // PENSTOCK_COMMON_STATUS_ERROR_DETAILS_H_
