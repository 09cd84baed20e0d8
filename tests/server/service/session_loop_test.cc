// The session's loop between a coordinator that the test plays and a runner
// that does nothing: who is told what, on which stream, and how it ends.
#include "server/service/session_loop.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/service/fake_coordinator_link.h"
#include "tests/server/service/fake_job_runner.h"

namespace penstock::server::service {
namespace {

using ::penstock::testing::FakeCoordinatorLink;
using ::penstock::testing::FakeJobRunner;
using ::penstock::testing::Recorded;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class SessionLoopTest : public ::testing::Test {
 protected:
  SessionLoopTest() {
    SessionLoop::Options options;
    options.registration.set_stage_name("stage-0");
    options.registration.set_incarnation(
        "00000000-0000-4000-8000-000000000000");
    loop_ = std::make_unique<SessionLoop>(
        options, clock_, link_,
        [this](const SessionEnd& end) { ends_.Put(end); });
  }

  // Registers, and opens and welcomes a session: returns its stream.
  FakeCoordinatorLink::Stream Connect() {
    loop_->Start(runner_);
    const auto registered = link_.registrations.Take();
    CHECK(registered.has_value());
    v1::RegisterStageResponse response;
    response.set_term(1);
    response.mutable_lease()->set_seconds(10);
    response.mutable_heartbeat()->set_seconds(1);
    (*registered)(response);
    return Welcomed();
  }
  // The next stream that is opened, welcomed.
  FakeCoordinatorLink::Stream Welcomed() {
    auto stream = link_.streams.Take();
    CHECK(stream.has_value());
    v1::CoordinatorMessage message = Message(epoch_);
    message.mutable_welcome()->set_term(1);
    message.mutable_welcome()->mutable_lease()->set_seconds(10);
    message.mutable_welcome()->mutable_heartbeat()->set_seconds(1);
    stream->listener.on_message(message);
    AwaitConnected(true);
    return *std::move(stream);
  }
  // Until the loop has handled what makes it so: its clock must not move
  // before.
  void AwaitConnected(bool wanted) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    v1::StageStatus status;
    do {
      CHECK(absl::Now() < deadline);
      std::this_thread::yield();
      status.Clear();
      loop_->Describe(status);
    } while (status.coordinator_connected() != wanted);
  }
  v1::CoordinatorMessage Message(int64_t epoch, int64_t seq = 0) {
    epoch_ = epoch;
    v1::CoordinatorMessage message;
    message.set_term(1);
    message.set_epoch(epoch);
    message.set_seq(seq);
    return message;
  }
  FakeJobRunner::Call NextCall() {
    auto call = runner_.calls.Take();
    CHECK(call.has_value());
    return *call;
  }

  tests::fakes::FakeClock clock_;
  FakeCoordinatorLink link_;
  FakeJobRunner runner_;
  Recorded<SessionEnd> ends_;
  int64_t epoch_ = 0;
  // Last: its thread uses the others.
  std::unique_ptr<SessionLoop> loop_;
};

TEST_F(SessionLoopTest, WorkGoesToTheRunnerAndItsReportsToTheCoordinator) {
  const auto stream = Connect();
  EXPECT_EQ(stream.hello.hello().stage_name(), "stage-0");
  v1::CoordinatorMessage message = Message(1, 1);
  message.mutable_check_inputs();
  stream.listener.on_message(message);
  message = Message(1, 2);
  message.mutable_probe_output();
  stream.listener.on_message(message);
  message = Message(1, 3);
  message.mutable_assignment();
  stream.listener.on_message(message);
  message = Message(1, 4);
  message.mutable_commands()->set_step(1);
  stream.listener.on_message(message);
  for (const char* what : {"CheckInputs", "ProbeOutput", "Assemble", "Run"}) {
    const FakeJobRunner::Call call = NextCall();
    EXPECT_EQ(call.what, what);
    EXPECT_EQ(call.epoch, 1);
  }
  v1::StageMessage report;
  report.mutable_step_report()->set_step(1);
  loop_->Report(1, report);
  const auto sent = link_.sent.Take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->step_report().step(), 1);
  EXPECT_EQ(sent->step_report().acked_seq(), 4);
}

TEST_F(SessionLoopTest, WorkSaysWhenItCame) {
  const auto stream = Connect();
  clock_.Advance(absl::Milliseconds(5));
  v1::CoordinatorMessage message = Message(1, 1);
  message.mutable_release()->set_step(1);
  stream.listener.on_message(message);
  EXPECT_EQ(NextCall().came, clock_.Monotonic());
}

TEST_F(SessionLoopTest, BeatsWhenItsTimeHasCome) {
  Connect();
  clock_.Advance(absl::Seconds(1));
  const auto sent = link_.sent.Take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->heartbeat().progress(), 7);
}

TEST_F(SessionLoopTest, WhatIsReportedOfAnAbortedEpochGoesNowhere) {
  const auto stream = Connect();
  v1::CoordinatorMessage message = Message(1, 1);
  message.mutable_assignment();
  stream.listener.on_message(message);
  EXPECT_EQ(NextCall().what, "Assemble");
  message = Message(2);
  message.mutable_abort()->set_epoch(2);
  message.mutable_abort()->set_release(true);
  *message.mutable_abort()->mutable_cause() =
      common::rpc::ToCause(absl::UnavailableError("stage-1 died"), "stage-1");
  stream.listener.on_message(message);
  const FakeJobRunner::Call abort = NextCall();
  EXPECT_EQ(abort.what, "Abort");
  EXPECT_EQ(abort.epoch, 2);
  EXPECT_THAT(abort.cause, StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("stage-1 died")));
  v1::StageMessage late;
  late.mutable_ready();
  loop_->Report(1, late);
  v1::StageMessage aborted;
  aborted.mutable_aborted()->set_epoch(2);
  loop_->Report(2, aborted);
  // In the order of reports: the late one would have come first.
  const auto sent = link_.sent.Take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_TRUE(sent->has_aborted()) << sent->DebugString();
}

TEST_F(SessionLoopTest, AnOldStreamsMessagesAndEndAreIgnored) {
  const auto old = Connect();
  old.listener.on_broken(absl::UnavailableError("the coordinator went away"));
  AwaitConnected(false);
  clock_.Advance(absl::Seconds(1));  // The back-off.
  const auto stream = Welcomed();
  // What was under way in the old stream, and its end once more.
  v1::CoordinatorMessage message = Message(1, 1);
  message.mutable_assignment();
  old.listener.on_message(message);
  old.listener.on_broken(absl::CancelledError("again"));
  message = Message(1, 1);
  message.mutable_check_inputs();
  stream.listener.on_message(message);
  EXPECT_EQ(NextCall().what, "CheckInputs");
  // And the new session stands: it is not dialled again.
  v1::StageMessage checked;
  checked.mutable_inputs_checked();
  loop_->Report(1, checked);
  auto sent = link_.sent.Take();
  while (sent.has_value() && sent->has_heartbeat()) sent = link_.sent.Take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_TRUE(sent->has_inputs_checked());
  EXPECT_TRUE(link_.streams.empty());
  EXPECT_TRUE(runner_.calls.empty());
}

TEST_F(SessionLoopTest, ASilentCoordinatorsStreamIsCancelledAndDialledAgain) {
  const auto old = Connect();
  clock_.Advance(absl::Seconds(10));
  ASSERT_TRUE(link_.cancels.Take().has_value());
  AwaitConnected(false);
  clock_.Advance(absl::Seconds(1));  // The back-off.
  Welcomed();
  old.listener.on_broken(absl::CancelledError("cancelled"));
  AwaitConnected(true);
  EXPECT_TRUE(link_.streams.empty());
}

TEST_F(SessionLoopTest, StopTellsEverybodyAndEndsOnce) {
  Connect();
  loop_->Stop();
  loop_->Stop();
  const auto end = ends_.Take();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0);
  const auto sent = link_.sent.Take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->failure().cause().reason(), "STAGE_LOST");
  EXPECT_EQ(NextCall().what, "Abort");
  EXPECT_TRUE(link_.closes.Take().has_value());
  loop_->Join();
  // Late reports go nowhere.
  loop_->Report(1, v1::StageMessage());
  EXPECT_TRUE(link_.sent.empty());
  EXPECT_TRUE(ends_.empty());
}

TEST_F(SessionLoopTest, ARefusalThatNoRetryMendsEndsWithTwo) {
  loop_->Start(runner_);
  const auto registered = link_.registrations.Take();
  ASSERT_TRUE(registered.has_value());
  (*registered)(absl::InvalidArgumentError("stage name !: not allowed"));
  const auto end = ends_.Take();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_THAT(end->status, StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("not allowed")));
}

// A stage that refuses a coordinator of an older term tries again every 2 s,
// for as long as it takes.
TEST_F(SessionLoopTest, ARefusalThatIsRepeatedIsLoggedOnceAndThenSummedUp) {
  const auto stream = Connect();
  ::testing::internal::CaptureStderr();
  stream.listener.on_broken(absl::NotFoundError("register again"));
  AwaitConnected(false);
  const auto refused = [this] {
    v1::StageStatus status;
    loop_->Describe(status);
    return status.stale_messages();
  };
  constexpr int kTries = 20;
  for (int i = 1; i <= kTries; ++i) {
    clock_.Advance(absl::Seconds(2));
    loop_->Report(-1, v1::StageMessage());  // Wakes the loop; else nothing.
    const auto registered = link_.registrations.Take();
    ASSERT_TRUE(registered.has_value());
    v1::RegisterStageResponse response;
    response.set_term(0);
    (*registered)(response);
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (refused() < i) {
      ASSERT_LT(absl::Now(), deadline);
      std::this_thread::yield();
    }
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (absl::StrContains(line, "refuses one at term 0")) {
      lines.emplace_back(line);
    }
  }
  ASSERT_THAT(lines, SizeIs(2)) << log;
  EXPECT_THAT(lines[0], Not(HasSubstr("more")));
  EXPECT_THAT(lines[1], HasSubstr("(and 14 times more in the last 30s)"));
}

}  // namespace
}  // namespace penstock::server::service
