// When messages arrive on a modelled wire, to the nanosecond: the carrier's
// deliveries and the clock are the test's.
#include "server/transport/modelled/modelled_transport.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/device/host_event.h"
#include "tests/conformance/transport_harness.h"
#include "tests/fakes/fake_clock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::modelled {
namespace {

using ::penstock::testing::Activation;
using ::penstock::testing::InlineStream;
using ::penstock::testing::Message;
using ::penstock::testing::StatusIs;
using ::penstock::testing::StepTag;
using ::penstock::tests::fakes::FakeClock;
using ::testing::HasSubstr;

constexpr absl::Duration kMs = absl::Milliseconds(1);

// Lets somebody else look, each time that it is looked at.
class WatchedEvent final : public device::HostEvent {
 public:
  WatchedEvent(const common::time::Clock& clock,
               const std::function<void()>& looked)
      : HostEvent(clock), looked_(looked) {}
  bool Done() const override {
    if (looked_) looked_();
    return HostEvent::Done();
  }

 private:
  const std::function<void()>& looked_;
};

// Delivers when the test says so, messages of all edges in their order.
class FakeCarrier final : public Transport {
 public:
  explicit FakeCarrier(const common::time::Clock& clock)
      : clock_(clock), ended_(std::make_shared<device::HostEvent>(clock)) {
    ended_->Reset();
  }

  void Deliver() { under_way_.at(delivered_++)->Signal(absl::OkStatus()); }
  // Calls it while an event of this carrier is looked at.
  void OnLook(std::function<void()> looked) { looked_ = std::move(looked); }
  void Fail(const Failure& failure) {
    failure_ = failure;
    FailAll();
    on_failure_(failure);
  }

  absl::Status Connect(absl::Time) override { return absl::OkStatus(); }
  std::vector<Edge> Unconnected() const override { return {}; }
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override {
    return std::make_unique<WatchedEvent>(clock_, looked_);
  }
  std::shared_ptr<const device::Event> ended() const override { return ended_; }
  void Send(const Edge&, const Tag&, const device::Tensor&, device::Stream&,
            device::Event& done) override {
    Begin(done);
  }
  void Receive(const Edge&, const Tag&, const device::Tensor&, device::Stream&,
               device::Event& done) override {
    Begin(done);
  }
  void StepAside() override {}
  Failure failure() const override { return failure_; }
  void OnFailure(std::function<void(const Failure&)> callback) override {
    on_failure_ = std::move(callback);
  }
  void Abort(const absl::Status& cause) override {
    if (failure_.status.ok()) failure_.status = cause;
    FailAll();
  }
  absl::Status Close(absl::Time) override { return absl::OkStatus(); }

 private:
  void FailAll() {
    ended_->Signal(failure_.status);
    for (; delivered_ < under_way_.size(); ++delivered_) {
      under_way_[delivered_]->Signal(failure_.status);
    }
  }
  void Begin(device::Event& done) {
    auto& event = dynamic_cast<device::HostEvent&>(done);
    event.Reset();
    under_way_.push_back(&event);
  }

  const common::time::Clock& clock_;
  const std::shared_ptr<device::HostEvent> ended_;
  std::function<void()> looked_;
  std::vector<device::HostEvent*> under_way_;
  size_t delivered_ = 0;
  Failure failure_;
  std::function<void(const Failure&)> on_failure_;
};

class ModelledTransportTest : public ::testing::Test {
 protected:
  void Model(const Wire& wire) {
    auto carrier = std::make_unique<FakeCarrier>(clock_);
    carrier_ = carrier.get();
    transport_ = ModelTransfers(std::move(carrier), wire, clock_);
  }

  // Of 4 bytes a value.
  std::unique_ptr<Message> Receive(size_t values, const Edge& edge) {
    auto message = std::make_unique<Message>();
    message->values.resize(values);
    message->done = std::move(transport_->CreateEvent()).value();
    transport_->Receive(edge, StepTag(1), message->tensor(), stream_,
                        *message->done);
    return message;
  }
  // When it arrived, since the test began. REQUIRES: it has.
  absl::Duration Arrival(const Message& message) const {
    return message.done->done_at().value() - begin_;
  }
  // Moves the clock to where the message is to arrive, and checks that it is
  // pending the nanosecond before.
  void ExpectArrivalAt(const Message& message, absl::Duration time) {
    const absl::Duration before = time - absl::Nanoseconds(1);
    clock_.Advance(before - (clock_.Monotonic() - begin_));
    EXPECT_FALSE(message.done->Done());
    EXPECT_EQ(message.done->done_at(), std::nullopt);
    clock_.Advance(absl::Nanoseconds(1));
    EXPECT_TRUE(message.done->Done());
    EXPECT_OK(message.done->Await(absl::InfiniteFuture()));
    EXPECT_EQ(Arrival(message), time);
  }

  FakeClock clock_;
  const common::time::MonotonicTime begin_ = clock_.Monotonic();
  InlineStream stream_;
  FakeCarrier* carrier_ = nullptr;
  std::unique_ptr<Transport> transport_;
};

TEST_F(ModelledTransportTest, AMessageArrivesTheLatencyAfterItsDelivery) {
  Model({.latency = 3 * kMs});
  const auto message = Receive(1, Activation(0));
  clock_.Advance(10 * kMs);
  EXPECT_FALSE(message->done->Done());
  carrier_->Deliver();
  ExpectArrivalAt(*message, 13 * kMs);
}

TEST_F(ModelledTransportTest, LatenciesOverlap) {
  Model({.latency = 3 * kMs});
  const auto first = Receive(1, Activation(0));
  const auto second = Receive(1, Activation(0));
  carrier_->Deliver();
  clock_.Advance(kMs);
  carrier_->Deliver();
  ExpectArrivalAt(*first, 3 * kMs);
  ExpectArrivalAt(*second, 4 * kMs);
}

TEST_F(ModelledTransportTest, MessagesOfAnEdgeShareItsBandwidth) {
  Model({.latency = kMs, .seconds_per_byte = 1e-3});
  const auto first = Receive(2, Activation(0));   // 8 ms.
  const auto second = Receive(1, Activation(0));  // 4 ms.
  carrier_->Deliver();
  carrier_->Deliver();
  ExpectArrivalAt(*first, 9 * kMs);
  ExpectArrivalAt(*second, 13 * kMs);
  // The wire is free since 12 ms.
  const auto third = Receive(1, Activation(0));
  clock_.Advance(7 * kMs);
  carrier_->Deliver();
  ExpectArrivalAt(*third, 25 * kMs);
}

TEST_F(ModelledTransportTest, EdgesDoNotShare) {
  Model({.seconds_per_byte = 1e-3});
  const auto one = Receive(2, Activation(0));
  const auto other = Receive(2, Activation(1));
  carrier_->Deliver();
  carrier_->Deliver();
  ExpectArrivalAt(*one, 8 * kMs);
  EXPECT_EQ(Arrival(*other), 8 * kMs);
}

TEST_F(ModelledTransportTest, ASendIsDoneWhenItsReceiveIs) {
  Model({.latency = kMs, .seconds_per_byte = 1e-3});
  Message message{.values = {1},
                  .done = std::move(transport_->CreateEvent()).value()};
  transport_->Send(Activation(0), StepTag(1), message.tensor(), stream_,
                   *message.done);
  carrier_->Deliver();
  ExpectArrivalAt(message, 5 * kMs);
}

TEST_F(ModelledTransportTest, ItDoesNotMatterWhenSomebodyLooks) {
  Model({.seconds_per_byte = 1e-3});
  const auto first = Receive(1, Activation(0));
  const auto second = Receive(1, Activation(0));
  carrier_->Deliver();
  carrier_->Deliver();
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Arrival(*second), 8 * kMs);
  EXPECT_EQ(Arrival(*first), 4 * kMs);
}

TEST_F(ModelledTransportTest, AnEventServesOneMessageAfterTheOther) {
  Model({.latency = kMs});
  const auto message = Receive(1, Activation(0));
  carrier_->Deliver();
  ExpectArrivalAt(*message, kMs);
  transport_->Receive(Activation(0), StepTag(2), message->tensor(), stream_,
                      *message->done);
  EXPECT_FALSE(message->done->Done());
  clock_.Advance(kMs);
  carrier_->Deliver();
  ExpectArrivalAt(*message, 3 * kMs);
}

// Monitors look at any time, in the midst of the engine's look too.
TEST_F(ModelledTransportTest, TwoMayLookAtOneTime) {
  Model({.seconds_per_byte = 1e-3});
  const auto first = Receive(1, Activation(0));
  const auto second = Receive(1, Activation(0));
  carrier_->Deliver();
  carrier_->Deliver();
  clock_.Advance(8 * kMs);
  bool looks = false;
  carrier_->OnLook([&] {
    if (std::exchange(looks, true)) return;
    EXPECT_EQ(Arrival(*second), 8 * kMs);
    looks = false;
  });
  EXPECT_EQ(Arrival(*second), 8 * kMs);
  EXPECT_EQ(Arrival(*first), 4 * kMs);
}

TEST_F(ModelledTransportTest, AnAbortFailsWhatIsOnTheWire) {
  Model({.latency = absl::Hours(1)});
  const auto arrived = Receive(1, Activation(0));
  const auto on_its_way = Receive(1, Activation(0));
  carrier_->Deliver();
  ExpectArrivalAt(*arrived, absl::Hours(1));
  carrier_->Deliver();
  transport_->Abort(absl::AbortedError("epoch 7 is over"));
  EXPECT_TRUE(on_its_way->done->Done());
  EXPECT_THAT(
      on_its_way->done->Await(absl::InfiniteFuture()),
      StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 7 is over")));
  EXPECT_OK(arrived->done->Await(absl::InfiniteFuture()));
  clock_.Advance(absl::Hours(2));
  EXPECT_THAT(on_its_way->done->Await(absl::InfiniteFuture()),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ModelledTransportTest, AFailureOfTheCarrierFailsWhatIsOnTheWire) {
  Model({.latency = absl::Hours(1)});
  int told = 0;
  transport_->OnFailure([&told](const Failure&) { ++told; });
  const auto message = Receive(1, Activation(0));
  carrier_->Deliver();
  carrier_->Fail({.status = absl::UnavailableError("rank-2 is gone"),
                  .edge = Activation(1)});
  EXPECT_THAT(
      message->done->Await(absl::InfiniteFuture()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank-2 is gone")));
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace penstock::server::transport::modelled
