#include "server/executor/command_board.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/host_event.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::server::executor {
namespace {

TEST(CommandBoardTest, AgeCountsFromBecomingTheHead) {
  tests::fakes::FakeClock clock;
  CommandBoard board(clock);
  EXPECT_FALSE(board.head().has_value());
  board.Add({.name = "0F0", .step = 1, .op = v1::OP_FORWARD});
  board.Add({.name = "0F1", .step = 1, .op = v1::OP_FORWARD});
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(board.head()->name, "0F0");
  EXPECT_EQ(board.head()->age, absl::Seconds(3));
  EXPECT_FALSE(board.head()->started);
  EXPECT_EQ(board.progress(), 0);

  board.Started();
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(board.head()->age, absl::Seconds(5));
  EXPECT_TRUE(board.head()->started);
  board.Ended();
  EXPECT_EQ(board.head()->name, "0F1");
  EXPECT_EQ(board.head()->age, absl::ZeroDuration());
  EXPECT_EQ(board.progress(), 1);
  board.GotOn();
  EXPECT_EQ(board.progress(), 2);
  clock.Advance(absl::Seconds(1));
  board.Started();
  board.Ended();
  EXPECT_FALSE(board.head().has_value());

  // Idle time is nobody's.
  clock.Advance(absl::Hours(1));
  board.Add({.name = "step end", .step = 1});
  EXPECT_EQ(board.head()->age, absl::ZeroDuration());
}

TEST(CommandBoardTest, TheSlowestHeadOfThoseWithADeadlineIsKept) {
  tests::fakes::FakeClock clock;
  CommandBoard board(clock);
  for (const auto& [seconds, has_deadline] :
       {std::pair{3, true}, std::pair{2, true}, std::pair{9, false}}) {
    board.Add({.name = "0F0", .step = 1, .has_deadline = has_deadline});
    clock.Advance(absl::Seconds(seconds));
    board.Started();
    board.Ended();
  }
  EXPECT_EQ(board.slowest(), absl::Seconds(3));
}

TEST(CommandBoardTest, AHeadIsDescribedForPeople) {
  EXPECT_EQ(Describe({.name = "1B4",
                      .step = 7,
                      .op = v1::OP_BACKWARD,
                      .stage = 1,
                      .micro_batch = 4}),
            "B stage 1 micro-batch 4 of step 7");
  EXPECT_EQ(Describe({.name = "apply", .step = 7}), "apply of step 7");
}

TEST(CommandBoardTest, TimesLeaveOutWaitingAndPseudoCommands) {
  tests::fakes::FakeClock clock;
  CommandBoard board(clock);
  board.Add({.name = "1B4",
             .step = 1,
             .op = v1::OP_BACKWARD,
             .stage = 1,
             .micro_batch = 4});
  board.Add({.name = "step end", .step = 1});
  clock.Advance(absl::Seconds(5));
  board.Started();
  clock.Advance(absl::Nanoseconds(70));
  board.Ended();
  board.Started();
  board.Ended();
  const auto timings = board.TakeTimings();
  ASSERT_EQ(timings.size(), 1);
  EXPECT_EQ(timings[0].op(), v1::OP_BACKWARD);
  EXPECT_EQ(timings[0].stage(), 1);
  EXPECT_EQ(timings[0].micro_batch(), 4);
  EXPECT_EQ(timings[0].end_ns() - timings[0].start_ns(), 70);
  EXPECT_TRUE(board.TakeTimings().empty());
}

TEST(CommandBoardTest, TimingsAreOfTheStreamsOwnTimeWhereItHasOne) {
  tests::fakes::FakeClock clock;
  const auto begin = clock.Monotonic();
  CommandBoard board(clock);
  board.Add({.name = "1B4", .op = v1::OP_BACKWARD});
  clock.Advance(absl::Seconds(3));  // Waits.
  board.Started(begin + absl::Milliseconds(2));
  clock.Advance(absl::Seconds(1));
  board.Ended(begin + absl::Milliseconds(7));
  const auto timings = board.TakeTimings();
  ASSERT_EQ(timings.size(), 1);
  EXPECT_EQ(timings[0].end_ns() - timings[0].start_ns(), 5'000'000);
  // A deadline is of the clock's.
  EXPECT_EQ(board.slowest(), absl::Seconds(4));
}

TEST(CommandBoardTest, HeadWaitsForTheFirstEventThatIsNotDone) {
  tests::fakes::FakeClock clock;
  CommandBoard board(clock);
  device::HostEvent input, buffer;
  input.Reset();
  buffer.Reset();
  board.Add(
      {.name = "1F0",
       .waits = {{.event = &input, .edge = 3}, {.event = &buffer, .edge = 5}}});
  EXPECT_EQ(board.head()->waits_for, 3);
  input.Signal(absl::OkStatus());
  EXPECT_EQ(board.head()->waits_for, 5);
  buffer.Signal(absl::OkStatus());
  EXPECT_EQ(board.head()->waits_for, kNone);
}

}  // namespace
}  // namespace penstock::server::executor
