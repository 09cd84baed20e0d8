// Peers that are real processes and are killed or stopped at every point.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::Activation;
using ::penstock::testing::Gradient;
using ::penstock::testing::InlineStream;
using ::penstock::testing::Link;
using ::penstock::testing::Message;
using ::penstock::testing::OptionsOf;
using ::penstock::testing::Soon;
using ::penstock::testing::StatusIs;
using ::penstock::testing::StepTag;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kLarge = 8 << 20;  // Floats: far more than sockets hold.

// A process under a sanitizer takes longer to die: its kernel frees the shadow
// memory before it closes the sockets.
#ifndef __has_feature
#define __has_feature(feature) 0  // g++ has none.
#endif
#if PENSTOCK_TSAN || __has_feature(address_sanitizer)
constexpr absl::Duration kNoticed = absl::Milliseconds(500);
#else
constexpr absl::Duration kNoticed = absl::Milliseconds(50);
#endif

// A child process that runs transport_peer, killed at the end.
class Child {
 public:
  Child(const std::string& parent, const std::string& mode, size_t floats) {
    int out[2];
    CHECK_EQ(pipe(out), 0);
    const std::string count = std::to_string(floats);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      execl(PENSTOCK_TRANSPORT_PEER, "transport_peer", parent.c_str(),
            mode.c_str(), count.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    out_ = fdopen(out[0], "r");
    address_ = ReadLine();
  }
  ~Child() {
    Kill();
    fclose(out_);
  }

  const std::string& address() const { return address_; }
  std::string ReadLine() {
    char line[128] = "";
    CHECK(fgets(line, sizeof(line), out_) != nullptr) << "the peer is gone";
    line[strcspn(line, "\n")] = '\0';
    return line;
  }
  // Returns once it has stopped itself.
  void AwaitStopped() {
    int status = 0;
    CHECK_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    CHECK(WIFSTOPPED(status)) << "the peer has ended";
  }
  void Kill() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
  std::string address_;
};

// This process is rank 0.
struct Pair {
  Pair(const std::string& mode, size_t floats,
       const ListenerOptions& options = {})
      : listener(Listener::Open(options, clock, common::ids::SystemRandom())
                     .value()),
        child(listener->address(), mode, floats) {
    transport = listener
                    ->CreateTransport(OptionsOf(
                        0, {{Activation(0), 0, 1}, {Gradient(1), 1, 0}},
                        [this](int) { return child.address(); }))
                    .value();
    CHECK_OK(transport->Connect(Soon()));
    CHECK_EQ(child.ReadLine(), "ready");
  }
  Message NewMessage(size_t floats) {
    return {.values = std::vector<float>(floats, 2.0f),
            .done = transport->CreateEvent().value()};
  }
  void Send(Message& m) {
    transport->Send(Activation(0), StepTag(0), m.tensor(), stream, *m.done);
  }
  void Receive(Message& m) {
    transport->Receive(Gradient(1), StepTag(0), m.tensor(), stream, *m.done);
  }

  common::time::RealClock clock;
  InlineStream stream;
  std::unique_ptr<Listener> listener;
  Child child;
  std::unique_ptr<Transport> transport;
};

// Of five tries the median, because other tests use the same cores. Each try
// returns how long it took from the death to the error.
void ExpectNoticedInTime(const std::function<absl::Duration()>& attempt) {
  std::vector<absl::Duration> tries;
  for (int i = 0; i < 5; ++i) {
    tries.push_back(attempt());
    EXPECT_LT(tries.back(), absl::Seconds(5));
  }
  std::sort(tries.begin(), tries.end());
  EXPECT_LE(tries[2], kNoticed)
      << "fastest " << tries.front() << ", slowest " << tries.back();
}

TEST(DeadPeerTest, KilledIdle) {
  ExpectNoticedInTime([] {
    Pair pair("idle", 1);
    common::sync::Notification failed;
    pair.transport->OnFailure([&](const auto&) { failed.Notify(); });
    const absl::Time start = absl::Now();
    pair.child.Kill();
    EXPECT_TRUE(failed.WaitForNotificationWithTimeout(absl::Seconds(60)));
    const absl::Duration took = absl::Now() - start;
    EXPECT_THAT(pair.transport->status(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(": peer rank-1 (127.0.0.1:"),
                               HasSubstr("without goodbye while nothing was "
                                         "under way"))));
    pair.transport.reset();
    return took;
  });
}

TEST(DeadPeerTest, KilledWhileItReceives) {
  ExpectNoticedInTime([] {
    Pair pair("receive", kLarge);
    Message sent = pair.NewMessage(kLarge);
    Message other = pair.NewMessage(1);
    pair.Receive(other);
    pair.child.AwaitStopped();
    pair.Send(sent);
    EXPECT_TRUE(sent.StaysPending());  // The sockets are full.
    const absl::Time start = absl::Now();
    pair.child.Kill();
    const absl::Status status = sent.Await();
    const absl::Duration took = absl::Now() - start;
    // Either edge may be the first to notice; all waiters are freed.
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("peer rank-1 (127.0.0.1:")));
    EXPECT_EQ(other.Await(), status);
    return took;
  });
}

TEST(DeadPeerTest, KilledWhileItSends) {
  ExpectNoticedInTime([] {
    Pair pair("send", kLarge);
    Message slot = pair.NewMessage(kLarge);
    pair.Receive(slot);
    pair.child.AwaitStopped();
    EXPECT_TRUE(slot.StaysPending());  // Half of it is here.
    const absl::Time start = absl::Now();
    pair.child.Kill();
    const absl::Status status = slot.Await();
    const absl::Duration took = absl::Now() - start;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("peer rank-1 (127.0.0.1:")));
    return took;
  });
}

TEST(DeadPeerTest, AStoppedPeerStaysPendingAndAbortFrees) {
  ExpectNoticedInTime([] {
    Pair pair("receive", kLarge);
    Message sent = pair.NewMessage(kLarge);
    pair.child.AwaitStopped();
    pair.Send(sent);
    EXPECT_TRUE(sent.StaysPending());
    EXPECT_OK(pair.transport->status());
    const absl::Time start = absl::Now();
    pair.transport->Abort(absl::AbortedError("its deadline has passed"));
    EXPECT_THAT(sent.Await(), StatusIs(absl::StatusCode::kAborted));
    return absl::Now() - start;
  });
}

TEST(DeadPeerTest, AWindowThatStaysClosedFailsAtTheUserTimeout) {
  Pair pair("receive", kLarge,
            {.liveness = {.unacknowledged = absl::Milliseconds(400)}});
  Message sent = pair.NewMessage(kLarge);
  pair.child.AwaitStopped();
  pair.Send(sent);
  EXPECT_THAT(sent.Await(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("activation 0->1: peer rank-1"),
                             HasSubstr("timed out"),
                             HasSubstr("in the middle of sending"))));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
