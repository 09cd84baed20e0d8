// The process has no descriptors left: a limit of its own, and no want of
// memory.
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/mover.h"
#include "tests/fakes/fake_clock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class NoDescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  void TearDown() override { ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

  rlimit before_{};
};

TEST_F(NoDescriptorsTest, AnEpochSaysWhichLimitToRaise) {
  const std::vector<std::unique_ptr<Connection>> connections;
  const tests::fakes::FakeClock clock;
  Mover mover(connections, clock);
  EXPECT_THAT(mover.Open(), StatusIs(absl::StatusCode::kUnavailable,
                                     AllOf(HasSubstr("Too many open files"),
                                           HasSubstr("LimitNOFILE"))));
}

TEST_F(NoDescriptorsTest, ALoopSaysWhichLimitToRaise) {
  EXPECT_THAT(EventLoop::Create(), StatusIs(absl::StatusCode::kUnavailable,
                                            AllOf(HasSubstr("event loop"),
                                                  HasSubstr("LimitNOFILE"))));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
