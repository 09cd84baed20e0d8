// What waiting costs: a message that does not come takes no processor time.
#include <sys/resource.h>

#include "gmock/gmock.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::testing {
namespace {

using WaitingTest = TransportTest;
PENSTOCK_FOR_EVERY_TRANSPORT(WaitingTest);

// Of all threads of this process, so the transport's own too.
absl::Duration ProcessorTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

// Awaits `message`, which does not come, for a second.
void ExpectCheapWait(const Message& message) {
  const absl::Time start = absl::Now();
  const absl::Duration before = ProcessorTime();
  EXPECT_THAT(message.done->Await(start + absl::Seconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const absl::Duration spent = ProcessorTime() - before;
  const absl::Duration waited = absl::Now() - start;
  EXPECT_GE(waited, absl::Seconds(1));
  EXPECT_LT(spent, waited / 100);
}

TEST_P(WaitingTest, AnAwaitedMessageTakesNoProcessorTime) {
  const std::vector<Link> links = {{Activation(0), 0, 1}, {Gradient(1), 1, 0}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  // An exchange first: both edges stand, and all threads have run.
  auto sent = a.Send(Activation(0), 1, {1});
  auto received = b.Receive(Activation(0), 1, 1);
  ASSERT_OK(received->Await());
  ASSERT_OK(sent->Await());
  auto awaited = a.Receive(Gradient(1), 1, 1);
  ExpectCheapWait(*awaited);
  a.Destroy();  // Ends what is pending.
}

TEST_P(WaitingTest, AMessageThatNobodyTakesTakesNoProcessorTime) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  ASSERT_OK(a->Connect(Soon()));
  ASSERT_OK(b->Connect(Soon()));
  auto sent = a.Send(Activation(0), 1, {1});
  ExpectCheapWait(*sent);
  a.Destroy();
}

}  // namespace
}  // namespace penstock::testing
