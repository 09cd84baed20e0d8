#include "server/service/session_core.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/cause.h"
#include "common/rpc/message_limit.h"
#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::service {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Time = common::time::MonotonicTime;

// Drives a core with a time that only the test moves.
class SessionCoreTest : public ::testing::Test {
 protected:
  std::vector<SessionAction> Handle(SessionEvent event) {
    return core_.Handle(std::move(event), now_);
  }
  std::vector<SessionAction> Advance(absl::Duration duration) {
    now_ += duration;
    return Handle(TickEvent{});
  }
  std::vector<SessionAction> Register(int64_t term = 1) {
    v1::RegisterStageResponse response;
    response.set_term(term);
    response.mutable_lease()->set_seconds(10);
    response.mutable_heartbeat()->set_seconds(1);
    return Handle(RegisteredEvent{response});
  }
  std::vector<SessionAction> Welcome(int64_t term) {
    v1::CoordinatorMessage message;
    message.set_term(term);
    message.set_epoch(core_.epoch());
    message.mutable_welcome()->set_term(term);
    message.mutable_welcome()->mutable_lease()->set_seconds(10);
    message.mutable_welcome()->mutable_heartbeat()->set_seconds(1);
    return Handle(MessageEvent{message});
  }
  void Connect() {
    Handle(StartEvent{});
    Register();
    Welcome(1);
    ASSERT_EQ(core_.state(), SessionState::kConnected);
  }
  std::vector<SessionAction> Again();
  static v1::CoordinatorMessage Work(int64_t term, int64_t epoch, int64_t seq) {
    v1::CoordinatorMessage message;
    message.set_term(term);
    message.set_epoch(epoch);
    message.set_seq(seq);
    message.mutable_commands()->set_step(seq);
    return message;
  }

  SessionCore core_{{.stage_name = "stage-0", .incarnation = "abc"}};
  Time now_ = Time::FromZero(absl::Seconds(100));
};

template <typename T>
const T* Only(const std::vector<SessionAction>& actions) {
  return actions.size() == 1 ? std::get_if<T>(&actions[0]) : nullptr;
}

TEST_F(SessionCoreTest, ALowerTermIsRefusedAndDialledAgain) {
  Handle(StartEvent{});
  Register(3);
  Welcome(3);
  ASSERT_EQ(core_.state(), SessionState::kConnected);
  Handle(StreamBrokenEvent{absl::NotFoundError("register again")});
  Advance(absl::Seconds(3));

  // At registration,
  const auto refused = Register(2);
  const auto* close = Only<CloseStreamAction>(refused);
  ASSERT_NE(close, nullptr);
  EXPECT_THAT(close->status,
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("stage-0"), HasSubstr("term 3"),
                             HasSubstr("term 2"), HasSubstr("--state-dir"))));
  EXPECT_EQ(core_.stale_messages(), 1);
  EXPECT_NE(Only<RegisterAction>(Advance(absl::Seconds(3))), nullptr);
  // and in place of Welcome.
  ASSERT_NE(Only<OpenStreamAction>(Register(3)), nullptr);
  const auto closed = Welcome(2);
  ASSERT_NE(Only<CloseStreamAction>(closed), nullptr);
  EXPECT_EQ(core_.stale_messages(), 2);
  Handle(StreamBrokenEvent{absl::OkStatus()});
  EXPECT_NE(Only<OpenStreamAction>(Advance(absl::Seconds(3))), nullptr);
  Welcome(4);
  EXPECT_EQ(core_.state(), SessionState::kConnected);
  EXPECT_EQ(core_.term(), 4);
}

TEST_F(SessionCoreTest, RegistersThenSaysHello) {
  EXPECT_NE(Only<RegisterAction>(Handle(StartEvent{})), nullptr);
  const auto actions = Register();
  const auto* open = Only<OpenStreamAction>(actions);
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(open->hello.hello().stage_name(), "stage-0");
  EXPECT_EQ(open->hello.hello().incarnation(), "abc");
  EXPECT_THAT(Welcome(1), SizeIs(0));
  EXPECT_EQ(core_.state(), SessionState::kConnected);
}

TEST_F(SessionCoreTest, HeartbeatsOnceAnInterval) {
  Connect();
  EXPECT_THAT(Advance(absl::Milliseconds(999)), SizeIs(0));
  EXPECT_NE(Only<HeartbeatAction>(Advance(absl::Milliseconds(1))), nullptr);
  EXPECT_EQ(core_.next_tick() - now_, absl::Seconds(1));
}

TEST_F(SessionCoreTest, UnreachableCoordinatorIsDialledWithBackoff) {
  Handle(StartEvent{});
  absl::Duration waited = absl::ZeroDuration();
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(Handle(RegisteredEvent{absl::UnavailableError("refused")}),
                SizeIs(0));
    waited = core_.next_tick() - now_;
    EXPECT_NE(Only<RegisterAction>(Advance(waited)), nullptr);
  }
  EXPECT_EQ(waited, absl::Seconds(2));
}

TEST_F(SessionCoreTest, TakenNameIsRetriedForOneLeaseThenExitsWithTwo) {
  Handle(StartEvent{});
  const auto taken = [this] {
    return Handle(RegisteredEvent{absl::AlreadyExistsError("held by host-b")});
  };
  EXPECT_THAT(taken(), SizeIs(0));
  now_ += absl::Seconds(9);
  Handle(TickEvent{});
  EXPECT_THAT(taken(), SizeIs(0));
  now_ += absl::Seconds(2);
  Handle(TickEvent{});
  const auto actions = taken();
  const auto* end = Only<EndAction>(actions);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_THAT(std::string(end->status.message()), HasSubstr("host-b"));
}

TEST_F(SessionCoreTest, TheRefusalSaysForHowLongATakenNameIsRetried) {
  Handle(StartEvent{});
  const auto taken = [this] {
    return Handle(RegisteredEvent{common::status::WithRetryAfter(
        absl::AlreadyExistsError("held by host-b"), absl::Seconds(3))});
  };
  EXPECT_THAT(taken(), SizeIs(0));
  now_ += absl::Seconds(2.9);
  EXPECT_THAT(taken(), SizeIs(0));
  now_ += absl::Seconds(0.2);
  EXPECT_NE(Only<EndAction>(taken()), nullptr);
}

TEST_F(SessionCoreTest, ProtocolMismatchExitsWithTwoAtOnce) {
  Handle(StartEvent{});
  const auto actions =
      Handle(RegisteredEvent{absl::FailedPreconditionError("1..1 and 2..3")});
  const auto* end = Only<EndAction>(actions);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->exit_code, 2);
}

TEST_F(SessionCoreTest, LowerTermOrEpochIsRefusedAndCounted) {
  Connect();
  Handle(MessageEvent{Work(1, 5, 1)});
  EXPECT_EQ(core_.epoch(), 5);
  EXPECT_THAT(Handle(MessageEvent{Work(1, 4, 2)}), SizeIs(0));
  EXPECT_THAT(Handle(MessageEvent{Work(0, 5, 2)}), SizeIs(0));
  EXPECT_EQ(core_.stale_messages(), 2);
}

TEST_F(SessionCoreTest, DuplicateIsIgnoredAndGapClosesTheStream) {
  Connect();
  EXPECT_NE(Only<RunAction>(Handle(MessageEvent{Work(1, 1, 1)})), nullptr);
  EXPECT_THAT(Handle(MessageEvent{Work(1, 1, 1)}), SizeIs(0));
  const auto actions = Handle(MessageEvent{Work(1, 1, 3)});
  const auto* close = Only<CloseStreamAction>(actions);
  ASSERT_NE(close, nullptr);
  EXPECT_EQ(close->status.code(), absl::StatusCode::kOutOfRange);
}

TEST_F(SessionCoreTest, AfterABreakHelloSaysHowFarAndReportsAreSaidAgain) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::StageMessage ack;
  ack.mutable_apply_ack()->set_step(3);
  Handle(JobEvent{1, ack});
  Handle(StreamBrokenEvent{absl::UnavailableError("reset")});
  EXPECT_EQ(core_.state(), SessionState::kBroken);
  v1::StageMessage report;
  report.mutable_step_report()->set_step(4);
  EXPECT_THAT(Handle(JobEvent{1, report}), SizeIs(0));

  const auto redial = Advance(core_.next_tick() - now_);
  const auto* open = Only<OpenStreamAction>(redial);
  ASSERT_NE(open, nullptr);
  const v1::Hello& hello = open->hello.hello();
  EXPECT_EQ(hello.term(), 1);
  EXPECT_EQ(hello.epoch(), 1);
  EXPECT_EQ(hello.applied_step(), 3);
  EXPECT_EQ(hello.acked_seq(), 1);
  EXPECT_EQ(hello.report().step(), 4);

  const auto again = Welcome(1);
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(std::get<SendAction>(again[0]).message.apply_ack().step(), 3);
  EXPECT_EQ(std::get<SendAction>(again[1]).message.step_report().step(), 4);
}

TEST_F(SessionCoreTest, UnknownToTheCoordinatorRegistersAgain) {
  Connect();
  Handle(StreamBrokenEvent{absl::NotFoundError("stage-0 is not registered")});
  EXPECT_EQ(core_.state(), SessionState::kRegistering);
  EXPECT_NE(Only<RegisterAction>(Advance(core_.next_tick() - now_)), nullptr);
}

TEST_F(SessionCoreTest, ASessionOnWhichNothingIsHeardForALeaseIsCancelled) {
  Handle(StartEvent{});
  Register();
  // A coordinator that takes the stream and says no Welcome,
  EXPECT_THAT(Advance(absl::Seconds(9.9)), SizeIs(0));
  EXPECT_EQ(core_.next_tick() - now_, absl::Seconds(0.1));
  auto actions = Advance(absl::Seconds(0.1));
  const auto* cancel = Only<CancelStreamAction>(actions);
  ASSERT_NE(cancel, nullptr);
  EXPECT_THAT(cancel->status,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("stage-0"), HasSubstr("10s"))));
  EXPECT_EQ(core_.state(), SessionState::kBroken);
  EXPECT_NE(Only<OpenStreamAction>(Advance(core_.next_tick() - now_)), nullptr);
  Welcome(1);
  ASSERT_EQ(core_.state(), SessionState::kConnected);
  // and one that answers heartbeats no more.
  const auto beats_until = [this](Time end) {
    while (core_.next_tick() < end) {
      ASSERT_NE(Only<HeartbeatAction>(Advance(core_.next_tick() - now_)),
                nullptr);
    }
  };
  beats_until(now_ + absl::Seconds(5));
  v1::CoordinatorMessage ack;
  ack.set_term(1);
  ack.mutable_heartbeat_ack();
  Handle(MessageEvent{ack});
  const Time silent = now_ + absl::Seconds(10);
  beats_until(silent);
  actions = Advance(silent - now_);
  ASSERT_NE(Only<CancelStreamAction>(actions), nullptr);
  EXPECT_EQ(core_.state(), SessionState::kBroken);
  // Its end says nothing new.
  EXPECT_THAT(Handle(StreamBrokenEvent{absl::CancelledError("cancelled")}),
              SizeIs(0));
  EXPECT_NE(Only<OpenStreamAction>(Advance(core_.next_tick() - now_)), nullptr);
}

// What the core says once the session is open again.
std::vector<SessionAction> SessionCoreTest::Again() {
  Advance(core_.next_tick() - now_);
  return Welcome(1);
}

TEST_F(SessionCoreTest, AMessageOverTheLimitIsAFailureOfTheJob) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::StageMessage report;
  report.mutable_end_report()->set_shard_file(
      std::string(common::rpc::kMaxControlMessageBytes, 's'));
  const auto actions = Handle(JobEvent{1, report});
  const auto* send = Only<SendAction>(actions);
  ASSERT_NE(send, nullptr);
  ASSERT_TRUE(send->message.has_failure());
  EXPECT_EQ(send->message.failure().epoch(), 1);
  EXPECT_EQ(send->message.failure().cause().code(),
            static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_THAT(send->message.failure().cause().message(),
              HasSubstr("StageMessage.end_report.shard_file"));
  // And nothing else is said again.
  Handle(StreamBrokenEvent{absl::UnavailableError("reset")});
  const auto again = Again();
  ASSERT_NE(Only<SendAction>(again), nullptr);
  EXPECT_TRUE(Only<SendAction>(again)->message.has_failure());
}

TEST_F(SessionCoreTest, ASessionThatEndsForTheSizeOfAMessageIsNotRepeated) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::StageMessage ready;
  ready.mutable_ready();
  Handle(JobEvent{1, ready});
  Handle(StreamBrokenEvent{absl::ResourceExhaustedError(
      "Received message larger than max (9 vs. 4)")});
  const auto again = Again();
  const auto* send = Only<SendAction>(again);
  ASSERT_NE(send, nullptr);
  EXPECT_THAT(send->message.failure().cause().message(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"),
                    HasSubstr("larger than max (9 vs. 4)")));
}

TEST_F(SessionCoreTest, SessionsThatAllBreakAreNotRepeatedForEver) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::StageMessage ready;
  ready.mutable_ready();
  Handle(JobEvent{1, ready});
  int sessions = 0;
  absl::Duration last;
  for (; sessions < 100; ++sessions) {
    Handle(StreamBrokenEvent{absl::OkStatus()});
    last = core_.next_tick() - now_;
    const auto again = Again();
    ASSERT_NE(Only<SendAction>(again), nullptr);
    if (!Only<SendAction>(again)->message.has_failure()) continue;
    EXPECT_THAT(Only<SendAction>(again)->message.failure().cause().message(),
                HasSubstr("8 sessions in a row"));
    break;
  }
  EXPECT_EQ(sessions, 7);
  EXPECT_EQ(last, absl::Seconds(2));  // Later and later.
}

TEST_F(SessionCoreTest, BreaksWithAnswersBetweenThemAreNoFailure) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::StageMessage ready;
  ready.mutable_ready();
  Handle(JobEvent{1, ready});
  v1::CoordinatorMessage ack;
  ack.set_term(1);
  ack.set_epoch(1);
  ack.mutable_heartbeat_ack();
  for (int i = 0; i < 100; ++i) {
    Handle(StreamBrokenEvent{absl::UnavailableError("reset")});
    EXPECT_EQ(core_.next_tick() - now_, absl::Milliseconds(100));
    const auto again = Again();
    ASSERT_NE(Only<SendAction>(again), nullptr);
    ASSERT_TRUE(Only<SendAction>(again)->message.has_ready());
    Handle(MessageEvent{ack});
  }
}

TEST_F(SessionCoreTest, ACoordinatorThatIsFullIsDialledAgain) {
  Handle(StartEvent{});
  Register();
  for (int i = 0; i < 20; ++i) {
    Handle(StreamBrokenEvent{
        absl::ResourceExhaustedError("1024 sessions are open")});
    EXPECT_EQ(core_.state(), SessionState::kBroken);
    EXPECT_NE(Only<OpenStreamAction>(Advance(core_.next_tick() - now_)),
              nullptr);
  }
  EXPECT_THAT(Welcome(1), SizeIs(0));
}

TEST_F(SessionCoreTest, AbortEntersItsEpochAndOldReportsAreDropped) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::CoordinatorMessage message;
  message.set_term(1);
  message.set_epoch(2);
  message.mutable_abort()->set_epoch(2);
  *message.mutable_abort()->mutable_cause() =
      common::rpc::ToCause(absl::UnavailableError("stage-1 died"), "stage-1");
  message.mutable_abort()->set_release(true);
  const auto actions = Handle(MessageEvent{message});
  const auto* abort = Only<AbortAction>(actions);
  ASSERT_NE(abort, nullptr);
  EXPECT_EQ(abort->epoch, 2);
  EXPECT_THAT(std::string(abort->cause.message()), HasSubstr("stage-1 died"));
  v1::StageMessage late;
  late.mutable_step_report()->set_step(1);
  EXPECT_THAT(Handle(JobEvent{1, late}), SizeIs(0));
}

TEST_F(SessionCoreTest, AnAbortWithoutACauseIsNoFailure) {
  Connect();
  Handle(MessageEvent{Work(1, 1, 1)});
  v1::CoordinatorMessage message;
  message.set_term(1);
  message.set_epoch(2);
  message.mutable_abort()->set_epoch(2);
  message.mutable_abort()->set_release(true);
  const auto actions = Handle(MessageEvent{message});
  const auto* abort = Only<AbortAction>(actions);
  ASSERT_NE(abort, nullptr);
  EXPECT_OK(abort->cause);
}

TEST_F(SessionCoreTest, StopTellsTheCoordinatorWhyAndEndsWithZero) {
  Connect();
  const auto actions = Handle(StopEvent{});
  ASSERT_THAT(actions, SizeIs(4));
  const auto& failure = std::get<SendAction>(actions[0]).message.failure();
  EXPECT_EQ(failure.cause().reason(), "STAGE_LOST");
  EXPECT_THAT(failure.cause().message(), HasSubstr("told to stop"));
  EXPECT_EQ(std::get<EndAction>(actions[3]).exit_code, 0);
  EXPECT_THAT(Handle(TickEvent{}), SizeIs(0));
}

}  // namespace
}  // namespace penstock::server::service
