// Peers and strangers that say what no correct peer says: each malformed byte
// ends its own connection with a named error and disturbs nothing else.
#include <filesystem>
#include <random>
#include <thread>

#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/transport/tcp/raw_peer.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::Activation;
using ::penstock::testing::InlineStream;
using ::penstock::testing::kEpoch;
using ::penstock::testing::Message;
using ::penstock::testing::ProveAsDialler;
using ::penstock::testing::RawListener;
using ::penstock::testing::RawSocket;
using ::penstock::testing::Soon;
using ::penstock::testing::StatusIs;
using ::penstock::testing::StepTag;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kSecret(32, 's');

// 100,000 in all; fewer where a sanitizer makes each slow.
#ifndef __has_feature
#define __has_feature(feature) 0  // g++ has none.
#endif
#if PENSTOCK_TSAN || __has_feature(address_sanitizer)
constexpr int kStrangers = 18'000, kMutatedFrames = 2'000;
#else
constexpr int kStrangers = 90'000, kMutatedFrames = 10'000;
#endif

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// A listener and, when asked for, one end of an edge whose other end is raw.
class MalformedTest : public ::testing::Test {
 protected:
  MalformedTest()
      : listener_(
            Listener::Open({}, clock_, common::ids::SystemRandom()).value()) {}

  std::unique_ptr<Transport> Open(EdgeRole role, const Edge& edge,
                                  const std::string& peer_address) {
    auto transport =
        listener_->CreateTransport({.epoch = kEpoch,
                                    .secret = kSecret,
                                    .edges = {{.edge = edge,
                                               .role = role,
                                               .capacity = 2,
                                               .peer = "stage-9",
                                               .peer_address = peer_address}}});
    EXPECT_OK(transport.status());
    return *std::move(transport);
  }

  // A target end with a posted slot of 4 floats, and its proved source.
  RawSocket OpenTarget() {
    transport_ = Open(EdgeRole::kTarget, Activation(0), "");
    transport_->OnFailure([this](const Failure&) { failed_.Notify(); });
    RawSocket source = RawSocket::Dial(listener_->address());
    EXPECT_TRUE(ProveAsDialler(source, Activation(0), kEpoch, kSecret));
    slot_ = {.values = {0, 0, 0, 0}, .done = transport_->CreateEvent().value()};
    transport_->Receive(Activation(0), StepTag(0), slot_.tensor(), stream_,
                        *slot_.done);
    FrameBytes grant;
    EXPECT_TRUE(source.Read(absl::MakeSpan(grant)));
    EXPECT_EQ(DecodeFrame(grant).value().granted, 1u);
    return source;
  }

  absl::Status AwaitFailure() {
    EXPECT_TRUE(failed_.WaitForNotificationWithTimeout(absl::Seconds(60)));
    return transport_->status();
  }

  Frame GoodMessage() {
    return {.type = FrameType::kMessage,
            .tag = StepTag(0),
            .payload_bytes = 16,
            .form_digest = FormDigest(slot_.tensor())};
  }

  common::time::RealClock clock_;
  std::unique_ptr<Listener> listener_;
  InlineStream stream_;
  Message slot_;
  common::sync::Notification failed_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(MalformedTest, AWrongByteInAFrameFailsItsEdgeByName) {
  RawSocket source = OpenTarget();
  FrameBytes bytes = EncodeFrame(GoodMessage());
  bytes[20] ^= std::byte{1};
  ASSERT_TRUE(source.Write(bytes));
  EXPECT_THAT(slot_.Await(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("activation 0->1: peer stage-9 (127."),
                             HasSubstr("malformed frame"))));
  EXPECT_TRUE(source.WaitForClose());
}

TEST_F(MalformedTest, AMessageWithoutASlotFailsItsEdge) {
  RawSocket source = OpenTarget();
  Frame second = GoodMessage();
  second.number = 1;
  ASSERT_TRUE(source.WriteFrame(GoodMessage()));
  ASSERT_TRUE(source.Write(std::vector<std::byte>(16)));
  EXPECT_OK(slot_.Await());
  ASSERT_TRUE(source.WriteFrame(second));
  EXPECT_TRUE(source.WaitForClose());
  EXPECT_THAT(AwaitFailure(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no slot")));
}

TEST_F(MalformedTest, APeerThatLeavesHalfAPayloadIsNamed) {
  RawSocket source = OpenTarget();
  ASSERT_TRUE(source.WriteFrame(GoodMessage()));
  ASSERT_TRUE(source.Write(std::vector<std::byte>(7)));
  source.Reset();
  EXPECT_THAT(slot_.Await(), StatusIs(absl::StatusCode::kUnavailable,
                                      AllOf(HasSubstr("stage-9"),
                                            HasSubstr("bytes were missing"))));
}

TEST_F(MalformedTest, BytesBehindAGoodbyeFailTheEdge) {
  RawSocket source = OpenTarget();
  ASSERT_TRUE(source.WriteFrame(GoodMessage()));
  ASSERT_TRUE(source.Write(std::vector<std::byte>(16)));
  EXPECT_OK(slot_.Await());
  FrameBytes ack;
  ASSERT_TRUE(source.Read(absl::MakeSpan(ack)));
  ASSERT_TRUE(source.WriteFrame({.type = FrameType::kGoodbye}));
  ASSERT_TRUE(source.WriteFrame({.type = FrameType::kGoodbye}));
  EXPECT_TRUE(source.WaitForClose());
  EXPECT_THAT(AwaitFailure(), StatusIs(absl::StatusCode::kDataLoss,
                                       HasSubstr("after its goodbye")));
}

TEST_F(MalformedTest, AnAcknowledgementOfWhatWasNotSentFailsTheSource) {
  RawListener peer;
  transport_ = Open(EdgeRole::kSource, Activation(0), peer.address());
  RawSocket target = peer.Accept();
  ASSERT_TRUE(RawListener::ProveAsListener(target, kSecret));
  ASSERT_OK(transport_->Connect(Soon()));
  slot_ = {.values = {1}, .done = transport_->CreateEvent().value()};
  transport_->Send(Activation(0), StepTag(0), slot_.tensor(), stream_,
                   *slot_.done);
  ASSERT_TRUE(target.WriteFrame(
      {.type = FrameType::kGrant, .granted = 2, .received = 2}));
  EXPECT_THAT(slot_.Await(), StatusIs(absl::StatusCode::kDataLoss,
                                      AllOf(HasSubstr("stage-9"),
                                            HasSubstr("impossible grant"))));
}

TEST_F(MalformedTest, AListenerThatCannotProveTheSecretIsNeverTrusted) {
  RawListener stranger;
  transport_ = Open(EdgeRole::kSource, Activation(0), stranger.address());
  std::thread listening([&stranger] {
    RawSocket socket = stranger.Accept();
    EXPECT_FALSE(RawListener::ProveAsListener(socket, std::string(32, 'x')));
  });
  listening.join();
  EXPECT_THAT(transport_->Connect(absl::Now() + absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("activation 0->1: peer stage-9"),
                             HasSubstr("does not know the epoch's secret"))));
}

TEST_F(MalformedTest, ASecondConnectionForAnEdgeIsRefused) {
  RawSocket source = OpenTarget();
  RawSocket second = RawSocket::Dial(listener_->address());
  EXPECT_FALSE(ProveAsDialler(second, Activation(0), kEpoch, kSecret));
  ASSERT_TRUE(source.WriteFrame(GoodMessage()));
  ASSERT_TRUE(source.Write(std::vector<std::byte>(16)));
  EXPECT_OK(slot_.Await());
}

TEST_F(MalformedTest, StrangersGetFewBytesAndGoWhenTheyAreTooMany) {
  transport_ = Open(EdgeRole::kTarget, Activation(0), "");
  // All silent; the first must go for the last ones.
  std::vector<RawSocket> strangers;
  for (int i = 0; i < 80; ++i) {
    strangers.push_back(RawSocket::Dial(listener_->address()));
  }
  EXPECT_TRUE(strangers.front().WaitForClose());
  // A true peer still gets in, past all of them.
  RawSocket source = RawSocket::Dial(listener_->address());
  EXPECT_TRUE(ProveAsDialler(source, Activation(0), kEpoch, kSecret));
}

TEST_F(MalformedTest, ASilentStrangerIsClosedAfterItsTime) {
  auto listener = Listener::Open({.stranger_timeout = absl::Milliseconds(30)},
                                 clock_, common::ids::SystemRandom());
  ASSERT_OK(listener.status());
  RawSocket stranger = RawSocket::Dial((*listener)->address());
  EXPECT_TRUE(stranger.WaitForClose());
}

// An edge within this process that exchanges messages until it is told to stop.
class RunningEdge {
 public:
  explicit RunningEdge(Listener& listener) {
    const Edge edge = Activation(0);
    transport_ =
        listener
            .CreateTransport({.epoch = kEpoch,
                              .secret = kSecret,
                              .edges = {{.edge = edge,
                                         .role = EdgeRole::kSource,
                                         .peer = "self",
                                         .peer_address = listener.address()},
                                        {.edge = edge,
                                         .role = EdgeRole::kTarget,
                                         .peer = "self"}}})
            .value();
    CHECK_OK(transport_->Connect(Soon()));
    thread_ = std::thread([this] { Exchange(); });
  }
  // Stops, and returns how many messages went through.
  int64_t Stop() {
    stop_.Notify();
    thread_.join();
    return messages_;
  }

 private:
  void Exchange() {
    InlineStream stream;
    for (int64_t step = 0; !stop_.HasBeenNotified(); ++step) {
      Message sent{.values = std::vector<float>(100, step % 1000),
                   .done = transport_->CreateEvent().value()};
      Message slot{.values = std::vector<float>(100),
                   .done = transport_->CreateEvent().value()};
      transport_->Receive(Activation(0), StepTag(step), slot.tensor(), stream,
                          *slot.done);
      transport_->Send(Activation(0), StepTag(step), sent.tensor(), stream,
                       *sent.done);
      ASSERT_OK(slot.Await());
      ASSERT_OK(sent.Await());
      ASSERT_EQ(slot.values, sent.values);
      ++messages_;
    }
  }

  std::unique_ptr<Transport> transport_;
  int64_t messages_ = 0;  // The thread's, until it is joined.
  common::sync::Notification stop_;
  std::thread thread_;
};

// What a malicious or broken program may do with a connection to the listener.
void Misbehave(const std::string& address, std::mt19937& random) {
  RawSocket socket = RawSocket::Dial(address);
  std::vector<std::byte> noise(random() % 120);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  HelloBytes hello = EncodeHello({.edge = Activation(random() % 3),
                                  .epoch = random() % 2 == 0 ? kEpoch : 3});
  switch (random() % 6) {
    case 0:  // Noise.
      (void)socket.Write(noise);
      break;
    case 1:  // A hello with a wrong byte.
      hello[random() % hello.size()] ^= static_cast<std::byte>(random());
      (void)socket.Write(hello);
      break;
    case 2:  // Part of a hello.
      (void)socket.Write(
          absl::MakeConstSpan(hello).subspan(0, random() % hello.size()));
      break;
    case 3:  // A hello, then noise for a proof.
      noise.resize(32 + random() % 40);
      (void)socket.Write(hello);
      (void)socket.Write(noise);
      break;
    case 4:  // The running edge's own hello and another secret's proof.
      (void)ProveAsDialler(socket, Activation(0), kEpoch, "a wrong secret");
      break;
    default:  // Nothing.
      break;
  }
  socket.Reset();
}

TEST_F(MalformedTest, StrangersDoNotDisturbARunningEdge) {
  RunningEdge edge(*listener_);
  const size_t before = OpenDescriptors();
  std::mt19937 random(5);
  size_t most = 0;
  for (int i = 0; i < kStrangers; ++i) {
    Misbehave(listener_->address(), random);
    if (i % 500 == 0) most = std::max(most, OpenDescriptors());
  }
  // 64 strangers, what this test holds, and the directory being read.
  EXPECT_LE(most, before + 64 + 4);
  EXPECT_GT(edge.Stop(), 100);
}

// What a proved peer of another edge may say: a frame with one to three changed
// bytes and a payload of any length, then the end. True when its edge failed.
bool SayMutated(Listener& listener, int64_t epoch, std::mt19937& random) {
  InlineStream stream;
  auto transport = listener
                       .CreateTransport({.epoch = epoch,
                                         .secret = kSecret,
                                         .edges = {{.edge = Activation(0),
                                                    .role = EdgeRole::kTarget,
                                                    .peer = "stage-9"}}})
                       .value();
  RawSocket source = RawSocket::Dial(listener.address());
  CHECK(ProveAsDialler(source, Activation(0), epoch, kSecret));
  Message slot{.values = std::vector<float>(16),
               .done = transport->CreateEvent().value()};
  transport->Receive(Activation(0), StepTag(0), slot.tensor(), stream,
                     *slot.done);
  FrameBytes bytes = EncodeFrame({.type = FrameType::kMessage,
                                  .tag = StepTag(0),
                                  .payload_bytes = 64,
                                  .form_digest = FormDigest(slot.tensor())});
  for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(random());
  }
  (void)source.Write(bytes);
  (void)source.Write(std::vector<std::byte>(random() % 200));
  source.Reset();
  return !slot.Await().ok();
}

TEST_F(MalformedTest, MutatedFramesOnProvedConnectionsEndOnlyThem) {
  RunningEdge edge(*listener_);
  std::mt19937 random(6);
  int failed = 0;
  for (int i = 0; i < kMutatedFrames; ++i) {
    failed += SayMutated(*listener_, kEpoch + 1 + i, random);
  }
  // Of the mutations about one in 256 changes nothing, by its xor with zero.
  EXPECT_GT(failed, kMutatedFrames * 9 / 10);
  EXPECT_GT(edge.Stop(), 100);
}

}  // namespace
}  // namespace penstock::server::transport::tcp
