#include "common/time/clock.h"

#include "common/time/real_clock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::common::time {
namespace {

TEST(MonotonicTimeTest, PointsAndDurations) {
  const MonotonicTime t = MonotonicTime::FromZero(absl::Seconds(5));
  EXPECT_EQ((t + absl::Seconds(2)) - t, absl::Seconds(2));
  EXPECT_EQ(t - absl::Seconds(5), MonotonicTime());
  EXPECT_LT(t, t + absl::Nanoseconds(1));
  EXPECT_GE(t, t);
  EXPECT_LT(t + absl::Hours(1000000), MonotonicTime::Infinite());
}

TEST(RealClockTest, MonotonicNeverGoesBack) {
  const RealClock clock;
  MonotonicTime before = clock.Monotonic();
  for (int i = 0; i < 1000; ++i) {
    const MonotonicTime after = clock.Monotonic();
    EXPECT_GE(after, before);
    before = after;
  }
}

TEST(RealClockTest, WallTimeIsAfterThisWasWritten) {
  EXPECT_GT(RealClock().Now(), absl::FromUnixSeconds(1700000000));
}

TEST(FakeClockTest, MovesOnlyWhenTold) {
  tests::fakes::FakeClock clock;
  const absl::Time wall = clock.Now();
  const MonotonicTime start = clock.Monotonic();
  EXPECT_EQ(clock.Monotonic(), start);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now() - wall, absl::Seconds(3));
  EXPECT_EQ(clock.Monotonic() - start, absl::Seconds(3));
}

TEST(FakeClockTest, AWallClockJumpIsNotSeenByDeadlines) {
  tests::fakes::FakeClock clock;
  const MonotonicTime start = clock.Monotonic();
  clock.SetWallTime(absl::UnixEpoch());
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
  EXPECT_EQ(clock.Monotonic(), start);
}

}  // namespace
}  // namespace penstock::common::time
