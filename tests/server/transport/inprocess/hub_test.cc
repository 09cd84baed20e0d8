// What is particular to the in-process hub: faults to order, names, epochs.
#include "server/transport/inprocess/hub.h"

#include "gmock/gmock.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::inprocess {
namespace {

using ::penstock::testing::Activation;
using ::penstock::testing::IsOk;
using ::penstock::testing::Message;
using ::penstock::testing::StatusIs;
using ::penstock::testing::StepTag;
using ::testing::_;
using ::testing::HasSubstr;

// Both ends of activation 0->1 on one hub.
class HubTest : public ::testing::Test {
 protected:
  void Open(const HubOptions& options) {
    hub_ = std::make_unique<Hub>(options);
    source_ = Join("a", EdgeRole::kSource, "b").value();
    target_ = Join("b", EdgeRole::kTarget, "a").value();
  }
  absl::StatusOr<std::unique_ptr<Transport>> Join(const std::string& name,
                                                  EdgeRole role,
                                                  const std::string& peer) {
    return hub_->Join(
        name, {.epoch = testing::kEpoch,
               .edges = {{.edge = Activation(0), .role = role, .peer = peer}}});
  }
  // Sends message `step` and posts a slot for it.
  void Exchange(int64_t step) {
    sent_ = {.values = {1}, .done = source_->CreateEvent().value()};
    slot_ = {.values = {0}, .done = target_->CreateEvent().value()};
    source_->Send(Activation(0), StepTag(step), sent_.tensor(), stream_,
                  *sent_.done);
    target_->Receive(Activation(0), StepTag(step), slot_.tensor(), stream_,
                     *slot_.done);
  }

  std::unique_ptr<Hub> hub_;
  std::unique_ptr<Transport> source_, target_;
  testing::InlineStream stream_;
  Message sent_, slot_;
};

TEST_F(HubTest, ABreakFailsBothEndsAtTheOrderedMessage) {
  Open({.faults = {{.edge = Activation(0), .message = 1}}});
  Exchange(0);
  EXPECT_OK(slot_.Await());
  EXPECT_OK(sent_.Await());
  Exchange(1);
  EXPECT_THAT(slot_.Await(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("peer a: the connection")));
  EXPECT_THAT(sent_.Await(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("peer b: the connection")));
}

TEST_F(HubTest, AStallStaysPendingUntilAbort) {
  Open({.faults = {{.edge = Activation(0), .kind = FaultKind::kStall}}});
  Exchange(0);
  EXPECT_TRUE(slot_.StaysPending());
  EXPECT_OK(target_->status());
  target_->Abort(absl::AbortedError("enough"));
  EXPECT_THAT(slot_.Await(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("enough")));
  EXPECT_THAT(sent_.Await(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("peer b closed the connection")));
}

TEST_F(HubTest, AnEndIsTakenOnce) {
  Open({});
  EXPECT_THAT(Join("c", EdgeRole::kTarget, "a"),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("activation 0->1 of epoch 7")));
}

TEST_F(HubTest, ACapacityBelowOneIsRefused) {
  Open({});
  EXPECT_THAT(
      hub_->Join(
          "c", {.epoch = 8, .edges = {{.edge = Activation(0), .capacity = 0}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("activation 0->1: capacity 0 is below 1")));
}

TEST_F(HubTest, EpochsAreApart) {
  Open({});
  auto next = hub_->Join(
      "a", {.epoch = 8, .edges = {{.edge = Activation(0), .peer = "b"}}});
  EXPECT_THAT(next, IsOk());
  EXPECT_THAT((*next)->Connect(absl::Now() + absl::Milliseconds(5)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, _));
}

TEST_F(HubTest, TransportsMayOutliveTheHub) {
  Open({.max_delay = absl::Microseconds(100)});
  hub_.reset();
  Exchange(0);
  EXPECT_TRUE(slot_.StaysPending());
  source_.reset();
  EXPECT_THAT(slot_.Await(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("peer a closed the connection")));
}

}  // namespace
}  // namespace penstock::server::transport::inprocess
