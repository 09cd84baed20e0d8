#include "coordinator/dispatch/stage_links.h"

#include <string>
#include <vector>

#include "common/rpc/message_limit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kIncarnation[] = "11111111-1111-4111-8111-111111111111";

class StageLinksTest : public ::testing::Test {
 protected:
  StageLinksTest() : registry_({}), links_(7, registry_) {
    v1::RegisterStageRequest request;
    request.set_stage_name("a");
    request.set_incarnation(kIncarnation);
    request.mutable_device()->set_kind("cpu");
    request.add_numerics_ids("id");
    request.set_data_address("127.0.0.1:1");
    request.mutable_protocol()->set_lowest(1);
    request.mutable_protocol()->set_highest(1);
    EXPECT_OK(registry_.Register(request, now_).status());
  }
  void Open(SessionId session) {
    EXPECT_OK(registry_.OpenSession("a", kIncarnation, session, now_).status());
  }
  void Send() {
    EXPECT_OK(links_.Send("a", v1::CoordinatorMessage(), actions_));
  }
  v1::Hello HelloAt(int64_t epoch, int64_t acked) {
    v1::Hello hello;
    hello.set_term(7);
    hello.set_epoch(epoch);
    hello.set_acked_seq(acked);
    return hello;
  }
  // Numbers of the messages sent since the last call.
  std::vector<int64_t> Sent() {
    std::vector<int64_t> seqs;
    for (const Action& action : actions_) {
      const auto& message = std::get<SendToStage>(action).message;
      EXPECT_EQ(message.term(), 7);
      seqs.push_back(message.seq());
    }
    actions_.clear();
    return seqs;
  }

  const MonotonicTime now_ = MonotonicTime::FromZero(absl::Seconds(9));
  registry::Registry registry_;
  StageLinks links_;
  Actions actions_;
};

TEST_F(StageLinksTest, NumbersAreContiguousAndStartAfreshWithTheEpoch) {
  Open(1);
  links_.Begin("a", 3);
  Send();
  Send();
  EXPECT_THAT(Sent(), ElementsAre(1, 2));
  links_.Begin("a", 5);
  Send();
  EXPECT_EQ(std::get<SendToStage>(actions_[0]).message.epoch(), 5);
  EXPECT_THAT(Sent(), ElementsAre(1));
}

TEST_F(StageLinksTest, AMessageOverTheLimitIsRefusedAndTakesNoNumber) {
  Open(1);
  links_.Begin("a", 3);
  v1::CoordinatorMessage large;
  large.mutable_end()->set_shard_file(
      std::string(common::rpc::kMaxControlMessageBytes, 's'));
  EXPECT_THAT(links_.Send("a", large, actions_),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("CoordinatorMessage.end.shard_file")));
  Send();
  EXPECT_THAT(Sent(), ElementsAre(1));
}

TEST_F(StageLinksTest, WhatWasNotAcknowledgedIsSentAgain) {
  Open(1);
  links_.Begin("a", 3);
  for (int i = 0; i < 4; ++i) Send();
  links_.Acknowledge("a", 1);
  registry_.BreakSession(1, now_);
  Sent();
  Send();  // Nobody there; it waits.
  EXPECT_THAT(Sent(), IsEmpty());
  Open(2);
  links_.Resume("a", HelloAt(3, 2), actions_);
  EXPECT_THAT(Sent(), ElementsAre(3, 4, 5));
}

TEST_F(StageLinksTest, AcksOfAnOlderEpochCountForNothing) {
  Open(1);
  links_.Begin("a", 3);
  Send();
  links_.Begin("a", 4);
  Send();
  Sent();
  links_.Resume("a", HelloAt(3, 1), actions_);
  EXPECT_THAT(Sent(), ElementsAre(1));
}

TEST_F(StageLinksTest, AbortIsRepeatedUntilItIsAnswered) {
  Open(1);
  links_.Begin("a", 3);
  Send();
  links_.Abort("a", 4, {}, actions_);
  EXPECT_THAT(Sent(), ElementsAre(1, 0));
  links_.Resume("a", HelloAt(3, 1), actions_);
  EXPECT_THAT(Sent(), ElementsAre(0));
  EXPECT_FALSE(links_.Aborted("a", 3));  // Of an older one.
  EXPECT_TRUE(links_.Aborting("a"));
  EXPECT_TRUE(links_.Aborted("a", 4));
  EXPECT_FALSE(links_.Aborted("a", 4));
  links_.Resume("a", HelloAt(4, 0), actions_);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(StageLinksTest, ALostStageLosesItsSessionAndWhatWasSaidToIt) {
  for (const bool connected : {true, false}) {
    SCOPED_TRACE(connected);
    registry::StageEntry before = *registry_.Find("a");
    before.session = connected ? 8 : 0;
    links_.Begin("a", 3);
    Send();
    v1::Cause cause;
    cause.set_message("a is lost");
    actions_.clear();
    links_.End({.before = before, .cause = cause}, actions_);
    EXPECT_EQ(links_.epoch("a"), 0);
    ASSERT_EQ(actions_.size(), connected ? 1 : 0);
    if (!connected) continue;
    const auto& close = std::get<CloseSession>(actions_[0]);
    EXPECT_EQ(close.session, 8);
    EXPECT_THAT(close.status,
                StatusIs(absl::StatusCode::kAborted, HasSubstr("a is lost")));
  }
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
