// Who moves bytes when, and when peers hear of it: a mover without a loop
// thread, whose part the test plays, as it does the peer's.
#include "server/transport/tcp/mover.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/host_event.h"
#include "server/transport/operation.h"
#include "server/transport/tcp/frame.h"
#include "tests/fakes/fake_clock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr int kSlots = 4;

class Owner final : public ConnectionOwner {
 public:
  void OnBroken(const Failure& failure) override {
    ADD_FAILURE() << failure.status;
  }
  void OnClosed() override { ADD_FAILURE() << "closed"; }
};

// Where a message goes.
struct Slot {
  float value = 0;
  device::HostEvent done;
  std::shared_ptr<Operation> operation = std::make_shared<Operation>();
};

Frame Grant(uint64_t received) {
  return {.type = FrameType::kGrant, .granted = kSlots, .received = received};
}

bool Readable(int fd, int timeout_ms) {
  pollfd polled{.fd = fd, .events = POLLIN};
  return poll(&polled, 1, timeout_ms) == 1;
}

class MoverTest : public ::testing::Test {
 protected:
  ~MoverTest() override {
    connections_[0]->Fail(absl::CancelledError("end of test"));
  }

  // The target of an edge, with its slots posted, of which the peer knows.
  void Open(Acks acks) {
    mover_ = std::make_unique<Mover>(connections_, clock_, acks);
    ASSERT_OK(mover_->Open());
    connections_.push_back(std::make_unique<Connection>(
        EdgeOptions{.role = EdgeRole::kTarget, .capacity = kSlots},
        Connection::Deps{
            .owner = owner_, .epoll_fd = mover_->sockets_fd(), .index = 0}));
    for (Slot& slot : slots_) {
      slot.operation->tensor =
          device::Tensor(&slot.value, device::DType::kF32, device::Shape({1}));
      slot.operation->done = &slot.done;
      slot.done.Reset();
      connections_[0]->Begin(slot.operation);
      connections_[0]->Ready(slot.operation, absl::OkStatus());
    }
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends),
              0);
    peer_ = Fd(ends[0]);
    connections_[0]->Attach(Fd(ends[1]));
    ASSERT_THAT(Heard(), Optional(Eq(Grant(0))));
  }
  // The peer's next message.
  void Send() {
    const FrameBytes header =
        EncodeFrame({.type = FrameType::kMessage,
                     .payload_bytes = sizeof(float),
                     .form_digest = FormDigest(slots_[sent_].operation->tensor),
                     .number = sent_});
    const float value = 1;
    CHECK_EQ(send(peer_.get(), header.data(), header.size(), 0),
             static_cast<ssize_t>(header.size()));
    CHECK_EQ(send(peer_.get(), &value, sizeof(value), 0),
             static_cast<ssize_t>(sizeof(value)));
    ++sent_;
  }
  // The next frame that has been written to the peer by now.
  std::optional<Frame> Heard() {
    FrameBytes bytes;
    const ssize_t got = recv(peer_.get(), bytes.data(), bytes.size(), 0);
    if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
    return DecodeFrame(bytes).value();
  }
  void Drive(const device::HostEvent& event) {
    mover_->Drive(event, absl::InfiniteDuration());
  }

  tests::fakes::FakeClock clock_;
  Owner owner_;
  std::array<Slot, kSlots> slots_;
  Fd peer_;
  uint32_t sent_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::unique_ptr<Mover> mover_;
};

TEST_F(MoverTest, WhoStepsAsideLeavesTheSocketsToTheLoopThreadAtOnce) {
  Open(Acks::kImmediate);
  Drive(device::HostEvent());  // Done: the grace begins.
  Send();
  mover_->StepAside();
  EXPECT_TRUE(Readable(mover_->ready_fd(), 0));
  EXPECT_TRUE(mover_->OnReadable());
  EXPECT_TRUE(slots_[0].done.Done());
}

TEST_F(MoverTest, AnImmediateAcknowledgementIsThereWhenTheDriveEnds) {
  Open(Acks::kImmediate);
  Send();
  Drive(slots_[0].done);
  EXPECT_THAT(Heard(), Optional(Eq(Grant(1))));
}

TEST_F(MoverTest, ADelayedAcknowledgementIsOfSeveralMessages) {
  Open(Acks::kDelayed);
  for (int i = 0; i < 2; ++i) {
    Send();
    Drive(slots_[i].done);
    EXPECT_EQ(Heard(), std::nullopt);
  }
  ASSERT_TRUE(Readable(mover_->ready_fd(), -1));  // The timer.
  EXPECT_TRUE(mover_->OnReadable());
  EXPECT_THAT(Heard(), Optional(Eq(Grant(2))));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
