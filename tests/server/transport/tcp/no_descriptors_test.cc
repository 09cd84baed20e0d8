// The process has no descriptors left: a limit of its own, and no want of
// memory.
#include <sys/resource.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "common/log/log.h"
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

// What `call` returns where nothing can be opened. Nothing else is done
// meanwhile: UBSan looks through a pipe at objects of types that it has not
// seen yet, and so the one that the errors' words come from is shown to it.
template <typename Call>
auto WithoutDescriptors(Call call) {
  CHECK(!std::generic_category().message(EMFILE).empty());
  rlimit before{};
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto result = call();
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  return result;
}

TEST(NoDescriptorsTest, AnEpochSaysWhichLimitToRaise) {
  const std::vector<std::unique_ptr<Connection>> connections;
  const tests::fakes::FakeClock clock;
  Mover mover(connections, clock, Acks::kDelayed);
  EXPECT_THAT(WithoutDescriptors([&mover] { return mover.Open(); }),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("Too many open files"),
                             HasSubstr("LimitNOFILE"))));
}

TEST(NoDescriptorsTest, ALoopSaysWhichLimitToRaise) {
  EXPECT_THAT(
      WithoutDescriptors([] { return EventLoop::Create(); }),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("event loop"), HasSubstr("LimitNOFILE"))));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
