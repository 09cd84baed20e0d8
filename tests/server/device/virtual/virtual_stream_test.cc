// The time of a virtual stream, to the nanosecond, on a clock that the test
// moves; that a held thread can be freed, on the real one.
#include "server/device/virtual/virtual_stream.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "common/time/real_clock.h"
#include "gtest/gtest.h"
#include "server/device/host/inline_stream.h"
#include "server/device/host_event.h"
#include "tests/fakes/fake_clock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device::virtual_device {
namespace {

using ::penstock::testing::StatusIs;
using ::penstock::tests::fakes::FakeClock;
using ::testing::HasSubstr;

// Whoever waits for it makes the time pass; it fails at `fails_at`.
class PassingTime final : public Event {
 public:
  explicit PassingTime(FakeClock& clock) : clock_(clock) {}

  void FailAt(absl::Time time) { fails_at_ = time; }

  bool Done() const override { return clock_.Now() >= fails_at_; }
  absl::Status Await(absl::Time deadline) const override {
    const absl::Time until = std::min(deadline, fails_at_);
    if (until > clock_.Now()) clock_.Advance(until - clock_.Now());
    // A failure that says what an event says which is still pending.
    return absl::DeadlineExceededError(Done() ? "command overdue" : "pending");
  }
  std::optional<common::time::MonotonicTime> done_at() const override {
    return std::nullopt;
  }

 private:
  FakeClock& clock_;
  absl::Time fails_at_ = absl::InfiniteFuture();
};

class VirtualStreamTest : public ::testing::Test {
 protected:
  void SetUp() override { stream_.Wait(*ArrivedAt(absl::ZeroDuration())); }

  static constexpr absl::Duration kMs = absl::Milliseconds(1);

  // Since the test began.
  absl::Duration Elapsed() const { return clock_.Monotonic() - begin_; }
  absl::Duration StreamTime() const {
    return stream_.modelled_now().value() - begin_;
  }
  // Done, at this time of the clock.
  std::unique_ptr<HostEvent> ArrivedAt(absl::Duration elapsed) {
    auto event = std::make_unique<HostEvent>(clock_);
    event->Reset();
    clock_.Advance(elapsed - Elapsed());
    event->Signal(absl::OkStatus());
    return event;
  }

  FakeClock clock_;
  const common::time::MonotonicTime begin_ = clock_.Monotonic();
  PassingTime time_{clock_};
  VirtualStream stream_{clock_};
};

TEST_F(VirtualStreamTest, HoldsItsThreadUntilTheTimeIsOver) {
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(Elapsed(), 5 * kMs);
  EXPECT_EQ(StreamTime(), 5 * kMs);
}

TEST_F(VirtualStreamTest, MathIsPartOfTheTime) {
  clock_.Advance(2 * kMs);
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(Elapsed(), 5 * kMs);
}

TEST_F(VirtualStreamTest, WorkStartsWhereTheWorkBeforeWasToEnd) {
  for (int i = 1; i <= 100; ++i) {
    stream_.Occupy(5 * kMs, time_);
    clock_.Advance(absl::Microseconds(80));  // Wakes up late.
    EXPECT_EQ(StreamTime(), i * 5 * kMs);
  }
  EXPECT_EQ(Elapsed(), 500 * kMs + absl::Microseconds(80));
}

TEST_F(VirtualStreamTest, AThreadThatIsLateIsNotHeld) {
  stream_.Occupy(5 * kMs, time_);
  clock_.Advance(7 * kMs);
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(Elapsed(), 12 * kMs);
  EXPECT_EQ(StreamTime(), 10 * kMs);
}

TEST_F(VirtualStreamTest, AnInputThatCameDuringTheWorkBeforeDelaysNothing) {
  const auto input = ArrivedAt(3 * kMs);
  stream_.Occupy(5 * kMs, time_);
  stream_.Wait(*input);
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(StreamTime(), 10 * kMs);
}

TEST_F(VirtualStreamTest, WorkStartsWhenItsInputCameNotWhenTheThreadSawIt) {
  stream_.Occupy(5 * kMs, time_);
  const auto input = ArrivedAt(7 * kMs);
  clock_.Advance(absl::Microseconds(300));
  stream_.Wait(*input);
  EXPECT_EQ(StreamTime(), 7 * kMs);
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(Elapsed(), 12 * kMs);
}

TEST_F(VirtualStreamTest, TheLastOfSeveralInputsCounts) {
  const auto first = ArrivedAt(2 * kMs), last = ArrivedAt(4 * kMs);
  stream_.Wait(*last);
  stream_.Wait(*first);
  EXPECT_EQ(StreamTime(), 4 * kMs);
}

// Of a transport that does not note times.
TEST_F(VirtualStreamTest, AnInputOfUnknownTimeCameWhenItWasThere) {
  stream_.Occupy(5 * kMs, time_);
  HostEvent done;
  stream_.Wait(done);
  EXPECT_EQ(StreamTime(), 5 * kMs);
}

TEST_F(VirtualStreamTest, WhatWaitsForAnEventOfNowStartsNow) {
  stream_.Occupy(5 * kMs, time_);
  const auto released = ArrivedAt(25 * kMs);  // The barrier.
  stream_.Wait(*released);
  EXPECT_EQ(StreamTime(), 25 * kMs);
  clock_.Advance(kMs);  // Math.
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(Elapsed(), 30 * kMs);
}

// The engine copies batches in and waits for the copies, in the midst of work.
TEST_F(VirtualStreamTest, LookingAtItDoesNotMoveItsTime) {
  host::InlineEvent passed;
  stream_.Occupy(5 * kMs, time_);
  clock_.Advance(absl::Microseconds(80));
  stream_.Record(passed);
  ASSERT_OK(passed.Await(absl::InfiniteFuture()));
  ASSERT_OK(stream_.Synchronize(absl::InfiniteFuture()));
  stream_.Occupy(5 * kMs, time_);
  EXPECT_EQ(StreamTime(), 10 * kMs);
}

TEST_F(VirtualStreamTest, WorkWithoutTimeHoldsNobody) {
  stream_.Occupy(absl::ZeroDuration(), time_);
  EXPECT_EQ(Elapsed(), absl::ZeroDuration());
}

TEST_F(VirtualStreamTest, AStopFailsTheStreamAndFreesTheThread) {
  time_.FailAt(clock_.Now() + 2 * kMs);
  stream_.Occupy(absl::Hours(1), time_);
  EXPECT_EQ(Elapsed(), 2 * kMs);
  EXPECT_THAT(stream_.status(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                         HasSubstr("command overdue")));
  stream_.Occupy(absl::Hours(1), time_);  // Of a stream that has failed.
  EXPECT_EQ(Elapsed(), 2 * kMs);
}

TEST(VirtualStreamThreadTest, AnotherThreadFreesIt) {
  const common::time::RealClock clock;
  VirtualStream stream(clock);
  HostEvent now(clock), stop;
  now.Reset();
  now.Signal(absl::OkStatus());
  stream.Wait(now);
  stop.Reset();
  std::thread engine([&] { stream.Occupy(absl::Hours(1), stop); });
  stop.Signal(absl::CancelledError("the job is over"));
  engine.join();
  EXPECT_THAT(stream.status(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace penstock::server::device::virtual_device
