#include "common/rpc/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::common::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;

TEST(GrpcStatusTest, EveryCodeSurvivesBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status = status::WithReason(
        absl::Status(static_cast<absl::StatusCode>(code), "what"),
        "STAGE_LOST");
    const grpc::Status wire = ToGrpcStatus(status);
    EXPECT_EQ(static_cast<int>(wire.error_code()), code);
    const absl::Status back = FromGrpcStatus(wire);
    EXPECT_EQ(back.code(), status.code());
    EXPECT_EQ(back.message(), "what");
    EXPECT_EQ(status::Reason(back), "STAGE_LOST") << code;
    EXPECT_EQ(FromCause(ToCause(status, "stage-1")), status) << code;
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(GrpcStatusTest, TheDelayOfARetrySurvivesBothWays) {
  const absl::Status status = status::WithRetryAfter(
      absl::AlreadyExistsError("taken"), absl::Milliseconds(2500));
  EXPECT_EQ(status::RetryAfter(FromGrpcStatus(ToGrpcStatus(status))),
            absl::Milliseconds(2500));
  EXPECT_EQ(status::RetryAfter(absl::AlreadyExistsError("taken")),
            std::nullopt);
}

TEST(CauseTest, CodesThatDoNotExistBecomeUnknown) {
  v1::Cause cause;
  for (const int code : {0, -1, 17, 99}) {
    cause.set_code(code);
    EXPECT_EQ(FromCause(cause).code(), absl::StatusCode::kUnknown) << code;
  }
}

TEST(GrpcStatusTest, LongMessagesAreCutAtALine) {
  std::string message;
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&message, "violation ", i, "\n");
  const grpc::Status wire = ToGrpcStatus(absl::InvalidArgumentError(message));
  EXPECT_THAT(wire.error_message().size(), Le(3100u));
  EXPECT_THAT(wire.error_message(), HasSubstr("violation 0\n"));
  EXPECT_THAT(wire.error_message(), HasSubstr("more bytes not shown"));
}

TEST(GrpcStatusTest, GarbageDetailsAreIgnored) {
  const absl::Status status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::NOT_FOUND, "no job", "\xff\xff garbage"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status::Reason(status), "");
}

}  // namespace
}  // namespace penstock::common::rpc
