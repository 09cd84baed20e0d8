// Somebody sets the machine's clock while a thread waits for a message.
#include <atomic>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/ids/random.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::Gradient;
using ::penstock::testing::InlineStream;
using ::penstock::testing::Message;
using ::penstock::testing::OptionsOf;
using ::penstock::testing::StatusIs;
using ::penstock::testing::StepTag;

// Goes back by an hour once it was looked at.
class SetBackClock final : public common::time::Clock {
 public:
  absl::Time Now() const override {
    return real_.Now() -
           (looked_at_.exchange(true) ? absl::Hours(1) : absl::ZeroDuration());
  }
  common::time::MonotonicTime Monotonic() const override {
    return real_.Monotonic();
  }

 private:
  const common::time::RealClock real_{};
  mutable std::atomic<bool> looked_at_{false};
};

TEST(ClockStepTest, AWaitIsAsLongAsItWasMeantAtItsBegin) {
  const SetBackClock clock;
  ASSERT_OK_AND_ASSIGN(const auto listener,
                       Listener::Open({}, clock, common::ids::SystemRandom()));
  // Nobody is rank 1.
  ASSERT_OK_AND_ASSIGN(const auto transport,
                       listener->CreateTransport(OptionsOf(
                           0, {{Gradient(1), 1, 0}}, [](int) { return ""; })));
  ASSERT_OK_AND_ASSIGN(auto done, transport->CreateEvent());
  Message slot{.values = {0}, .done = std::move(done)};
  InlineStream stream;
  transport->Receive(Gradient(1), StepTag(1), slot.tensor(), stream,
                     *slot.done);
  EXPECT_THAT(slot.done->Await(absl::Now() + absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  transport->Abort(absl::AbortedError("over"));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
