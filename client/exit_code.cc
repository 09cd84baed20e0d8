#include "client/exit_code.h"

#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"

namespace penstock::client {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kUsage;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return kTimeout;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kDenied;
    case absl::StatusCode::kCancelled:
      return kCancelled;
    case absl::StatusCode::kFailedPrecondition:
      return common::status::Reason(status) ==
                     common::status::kReasonProtocolVersionUnsupported
                 ? kVersionMismatch
                 : kConflict;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return kConflict;
    default:
      return kInternal;
  }
}

ExitCode ExitCodeOf(const v1::Job& job) {
  if (job.state() == v1::Job::STATE_SUCCEEDED) return kDone;
  if (job.state() == v1::Job::STATE_CANCELLED) return kCancelled;
  switch (job.reason()) {
    case v1::Job::STATE_REASON_STAGE_LOST:
      // A stage that was refused for its protocol: docs/decisions/0009.
      return !job.has_start_time() &&
                     ExitCodeOf(common::rpc::FromCause(job.cause())) ==
                         kVersionMismatch
                 ? kVersionMismatch
                 : kJobFailed;
    case v1::Job::STATE_REASON_INVALID_SPEC:
    case v1::Job::STATE_REASON_INPUT_NOT_VISIBLE:
    case v1::Job::STATE_REASON_OUT_OF_MEMORY:
      // Before anything ran it is what was asked for; later what became of it.
      return job.has_start_time() ? kJobFailed : kUsage;
    case v1::Job::STATE_REASON_TIME_LIMIT:
      return kTimeout;
    case v1::Job::STATE_REASON_NUMERICS_MISMATCH:
      return kVersionMismatch;
    case v1::Job::STATE_REASON_INTERNAL:
      return kInternal;
    default:
      return kJobFailed;
  }
}

}  // namespace penstock::client
