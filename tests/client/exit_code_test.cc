#include "client/exit_code.h"

#include <iterator>

#include "absl/status/status.h"
#include "common/status/error_details.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

TEST(ExitCodeTest, EveryStatusCodeHasItsDocumentedExitCode) {
  const struct {
    absl::StatusCode code;
    int exit_code;
  } kTable[] = {
      {absl::StatusCode::kOk, 0},
      {absl::StatusCode::kInvalidArgument, 2},
      {absl::StatusCode::kOutOfRange, 2},
      {absl::StatusCode::kNotFound, 3},
      {absl::StatusCode::kUnavailable, 4},
      {absl::StatusCode::kResourceExhausted, 4},
      {absl::StatusCode::kDeadlineExceeded, 5},
      {absl::StatusCode::kPermissionDenied, 6},
      {absl::StatusCode::kUnauthenticated, 6},
      {absl::StatusCode::kCancelled, 7},
      {absl::StatusCode::kAlreadyExists, 9},
      {absl::StatusCode::kFailedPrecondition, 9},
      {absl::StatusCode::kAborted, 9},
      {absl::StatusCode::kInternal, 70},
      {absl::StatusCode::kDataLoss, 70},
      {absl::StatusCode::kUnknown, 70},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(ExitCodeOf(absl::Status(row.code, "x")), row.exit_code)
        << absl::StatusCodeToString(row.code);
  }
  EXPECT_EQ(ExitCodeOf(common::status::WithReason(
                absl::FailedPreconditionError("1..1 and 2..2"),
                "PROTOCOL_VERSION_UNSUPPORTED")),
            8);
}

TEST(ExitCodeTest, EveryEndOfAJobHasItsDocumentedExitCode) {
  v1::Job job;
  job.set_state(v1::Job::STATE_SUCCEEDED);
  EXPECT_EQ(ExitCodeOf(job), 0);
  job.set_state(v1::Job::STATE_CANCELLED);
  EXPECT_EQ(ExitCodeOf(job), 7);
  job.set_state(v1::Job::STATE_FAILED);
  // docs/operations.md: what was asked for before it ran, what became of it
  // after.
  const struct {
    v1::Job::StateReason reason;
    int before_it_ran;
    int while_it_ran;
  } kTable[] = {
      {v1::Job::STATE_REASON_UNSPECIFIED, 1, 1},
      {v1::Job::STATE_REASON_INVALID_SPEC, 2, 1},
      {v1::Job::STATE_REASON_INPUT_NOT_VISIBLE, 2, 1},
      {v1::Job::STATE_REASON_OUT_OF_MEMORY, 2, 1},
      {v1::Job::STATE_REASON_NO_STAGES, 1, 1},
      {v1::Job::STATE_REASON_STAGE_LOST, 1, 1},
      {v1::Job::STATE_REASON_TRANSPORT_TIMEOUT, 1, 1},
      {v1::Job::STATE_REASON_NONFINITE, 1, 1},
      {v1::Job::STATE_REASON_RESTARTS_EXHAUSTED, 1, 1},
      {v1::Job::STATE_REASON_DISK_FULL, 1, 1},
      {v1::Job::STATE_REASON_USER, 1, 1},
      {v1::Job::STATE_REASON_TIME_LIMIT, 5, 5},
      {v1::Job::STATE_REASON_NUMERICS_MISMATCH, 8, 8},
      {v1::Job::STATE_REASON_INTERNAL, 70, 70},
  };
  // The table is whole.
  EXPECT_EQ(std::size(kTable),
            v1::Job::StateReason_descriptor()->value_count());
  for (const auto& row : kTable) {
    job.set_reason(row.reason);
    EXPECT_EQ(ExitCodeOf(job), row.before_it_ran)
        << v1::Job::StateReason_Name(row.reason);
    job.mutable_start_time();
    EXPECT_EQ(ExitCodeOf(job), row.while_it_ran)
        << v1::Job::StateReason_Name(row.reason);
    job.clear_start_time();
  }
  // A stage that did not start is lost; one that was refused for its protocol
  // is a matter of versions.
  job.set_reason(v1::Job::STATE_REASON_STAGE_LOST);
  job.mutable_cause()->set_code(
      static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ExitCodeOf(job), 1);
  job.mutable_cause()->set_code(
      static_cast<int>(absl::StatusCode::kFailedPrecondition));
  job.mutable_cause()->set_reason("PROTOCOL_VERSION_UNSUPPORTED");
  EXPECT_EQ(ExitCodeOf(job), 8);
  job.mutable_start_time();
  EXPECT_EQ(ExitCodeOf(job), 1);
}

}  // namespace
}  // namespace penstock::client
