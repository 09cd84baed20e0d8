#include "common/rpc/message_limit.h"

#include <string>

#include "common/rpc/cause.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.pb.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::rpc {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MessageLimitTest, WhatFitsIsOk) {
  v1::StageMessage message;
  message.mutable_end_report()->set_shard_file(std::string(100, 's'));
  EXPECT_OK(CheckMessageSize(message));
  EXPECT_OK(
      CheckMessageSize(message, static_cast<int64_t>(message.ByteSizeLong())));
}

TEST(MessageLimitTest, TheFieldThatTakesMostIsNamedWithTheNumbers) {
  v1::StageMessage message;
  v1::InputReport& train = *message.mutable_inputs_checked()->mutable_train();
  train.set_fingerprint(std::string(64, 'f'));
  for (int i = 0; i < 100; ++i) train.add_files()->set_path("a/long/name");
  const absl::Status status = CheckMessageSize(message, 1000);
  EXPECT_THAT(
      status,
      StatusIs(
          absl::StatusCode::kInternal,
          AllOf(HasSubstr("StageMessage.inputs_checked.train.files"),
                HasSubstr("limit of a control message is 1000"),
                HasSubstr(std::to_string(message.ByteSizeLong()) + " bytes"))));
}

TEST(MessageLimitTest, ManyNumbersAreNamedToo) {
  v1::StageMessage message;
  for (int i = 0; i < 100; ++i) {
    message.mutable_step_report()->add_sums()->set_canonical_index(i + 1);
  }
  message.mutable_step_report()->set_nonfinite("h.0.weight");
  EXPECT_THAT(std::string(CheckMessageSize(message, 10).message()),
              HasSubstr("StageMessage.step_report.sums;"));
}

TEST(CauseTest, AMessageThatQuotesAFileNameCanBeParsed) {
  const v1::Cause cause =
      ToCause(absl::NotFoundError("a\xff.txt does not exist"), "stage-0");
  EXPECT_EQ(cause.message(), "a\\xff.txt does not exist");
  v1::Cause read;
  EXPECT_TRUE(read.ParseFromString(cause.SerializeAsString()));
}

}  // namespace
}  // namespace penstock::common::rpc
