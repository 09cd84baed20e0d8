// Delivery: order, rendezvous, capacity, sizes, stream order, counters.
#include <numeric>

#include "gmock/gmock.h"
#include "tests/conformance/transport_harness.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using DeliveryTest = TransportTest;
PENSTOCK_FOR_EVERY_TRANSPORT(DeliveryTest);

TEST_P(DeliveryTest, PayloadArrives) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  auto sent = a.Send(Activation(0), 1, {1, 2, 3});
  auto received = b.Receive(Activation(0), 1, 3);
  EXPECT_OK(received->Await());
  EXPECT_OK(sent->Await());
  EXPECT_THAT(received->values, ElementsAre(1, 2, 3));
}

TEST_P(DeliveryTest, ConnectReturnsWhenEveryEdgeStands) {
  const std::vector<Link> links = {{Activation(0), 0, 1}, {Gradient(1), 1, 0}};
  Rank a(*world_, 0, links);
  EXPECT_THAT(a->Unconnected(),
              UnorderedElementsAre(Activation(0), Gradient(1)));
  Rank b(*world_, 1, links);
  EXPECT_OK(a->Connect(Soon()));
  EXPECT_OK(b->Connect(Soon()));
  EXPECT_THAT(a->Unconnected(), IsEmpty());
  EXPECT_THAT(b->Unconnected(), IsEmpty());
}

TEST_P(DeliveryTest, ReceiveMayBePostedFirst) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  auto received = b.Receive(Activation(0), 1, 2);
  EXPECT_TRUE(received->StaysPending());
  auto sent = a.Send(Activation(0), 1, {4, 5});
  EXPECT_OK(received->Await());
  EXPECT_OK(sent->Await());
  EXPECT_THAT(received->values, ElementsAre(4, 5));
}

TEST_P(DeliveryTest, SendIsNotDoneBeforeTheReceiveIsPosted) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  ASSERT_OK(a->Connect(Soon()));
  auto sent = a.Send(Activation(0), 1, {1});
  EXPECT_TRUE(sent->StaysPending());
  auto received = b.Receive(Activation(0), 1, 1);
  EXPECT_OK(sent->Await());
  EXPECT_OK(received->Await());
}

TEST_P(DeliveryTest, MessagesOfAnEdgeArriveInOrder) {
  const std::vector<Link> links = {{Activation(0), 0, 1, /*capacity=*/4}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  std::vector<std::unique_ptr<Message>> sent, received;
  for (int i = 0; i < 100; ++i) {
    sent.push_back(a.Send(Activation(0), i, {static_cast<float>(i)}));
  }
  for (int i = 0; i < 100; ++i) {
    if (i >= 4) {
      ASSERT_OK(received[i - 4]->Await());
    }
    received.push_back(b.Receive(Activation(0), i, 1));
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(sent[i]->Await());
    ASSERT_OK(received[i]->Await());
    EXPECT_EQ(received[i]->values[0], i);
  }
}

TEST_P(DeliveryTest, AsManySendsCompleteAsSlotsArePosted) {
  const std::vector<Link> links = {{Activation(0), 0, 1, /*capacity=*/3}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  std::vector<std::unique_ptr<Message>> sent, received;
  for (int i = 0; i < 4; ++i) sent.push_back(a.Send(Activation(0), i, {1}));
  for (int i = 0; i < 3; ++i) {
    received.push_back(b.Receive(Activation(0), i, 1));
  }
  for (int i = 0; i < 3; ++i) EXPECT_OK(sent[i]->Await());
  EXPECT_TRUE(sent[3]->StaysPending());
  received.push_back(b.Receive(Activation(0), 3, 1));
  EXPECT_OK(sent[3]->Await());
  // What a sender is told is true of its receiver already.
  for (const auto& message : received) EXPECT_TRUE(message->done->Done());
  for (const auto& message : received) EXPECT_OK(message->Await());
}

TEST_P(DeliveryTest, EdgesOfNeighboursTwiceAreChannelsOfTheirOwn) {
  // V placement: rank 0 has stages 0 and 3, rank 1 has stages 1 and 2.
  const std::vector<Link> links = {{Activation(0), 0, 1},
                                   {Activation(2), 1, 0},
                                   {Gradient(3), 0, 1},
                                   {Gradient(1), 1, 0}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  auto first = a.Send(Activation(0), 1, {1});
  auto second = a.Send(Gradient(3), 1, {2});
  auto third = b.Send(Activation(2), 1, {3});
  auto fourth = b.Send(Gradient(1), 1, {4});
  // The other way round than they were sent.
  auto second_in = b.Receive(Gradient(3), 1, 1);
  EXPECT_OK(second_in->Await());
  EXPECT_TRUE(first->StaysPending());
  auto first_in = b.Receive(Activation(0), 1, 1);
  auto fourth_in = a.Receive(Gradient(1), 1, 1);
  auto third_in = a.Receive(Activation(2), 1, 1);
  for (const auto* message : {&first_in, &third_in, &fourth_in}) {
    EXPECT_OK((*message)->Await());
  }
  EXPECT_EQ(first_in->values[0], 1);
  EXPECT_EQ(second_in->values[0], 2);
  EXPECT_EQ(third_in->values[0], 3);
  EXPECT_EQ(fourth_in->values[0], 4);
  for (const auto* message : {&first, &second, &third, &fourth}) {
    EXPECT_OK((*message)->Await());
  }
}

TEST_P(DeliveryTest, ARankMaySendToItself) {
  const std::vector<Link> links = {{Activation(0), 0, 0}};
  Rank a(*world_, 0, links);
  auto sent = a.Send(Activation(0), 1, {6});
  auto received = a.Receive(Activation(0), 1, 1);
  EXPECT_OK(received->Await());
  EXPECT_OK(sent->Await());
  EXPECT_EQ(received->values[0], 6);
}

TEST_P(DeliveryTest, EmptyPayloadsAreMessages) {
  const std::vector<Link> links = {{Activation(0), 0, 1, 2}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  auto empty = a.Send(Activation(0), 1, {});
  auto full = a.Send(Activation(0), 2, {9});
  auto empty_in = b.Receive(Activation(0), 1, 0);
  auto full_in = b.Receive(Activation(0), 2, 1);
  EXPECT_OK(empty->Await());
  EXPECT_OK(full->Await());
  EXPECT_OK(empty_in->Await());
  EXPECT_OK(full_in->Await());
  EXPECT_EQ(full_in->values[0], 9);
}

TEST_P(DeliveryTest, EightMebibytesBothWaysAtOnceArriveWhole) {
  const std::vector<Link> links = {{Activation(0), 0, 1}, {Gradient(1), 1, 0}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  std::vector<float> values(2 << 20);
  std::iota(values.begin(), values.end(), 0.0f);
  auto forward = a.Send(Activation(0), 1, values);
  auto backward = b.Send(Gradient(1), 1, values);
  auto forward_in = b.Receive(Activation(0), 1, values.size());
  auto backward_in = a.Receive(Gradient(1), 1, values.size());
  EXPECT_OK(forward_in->Await());
  EXPECT_OK(backward_in->Await());
  EXPECT_OK(forward->Await());
  EXPECT_OK(backward->Await());
  EXPECT_TRUE(forward_in->values == values);
  EXPECT_TRUE(backward_in->values == values);
}

TEST_P(DeliveryTest, PayloadIsReadAfterTheStreamsEarlierWork) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  HeldStream held;
  Message sent{.values = {0}, .done = std::move(a->CreateEvent()).value()};
  a->Send(Activation(0), StepTag(1), sent.tensor(), held, *sent.done);
  auto received = b.Receive(Activation(0), 1, 1);
  EXPECT_TRUE(received->StaysPending());
  sent.values[0] = 5;  // What the stream's earlier work computes.
  held.RunAll();
  EXPECT_OK(received->Await());
  EXPECT_OK(sent.Await());
  EXPECT_EQ(received->values[0], 5);
}

TEST_P(DeliveryTest, SlotIsWrittenAfterTheStreamsEarlierWork) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  HeldStream held;
  Message slot{.values = {3}, .done = std::move(b->CreateEvent()).value()};
  b->Receive(Activation(0), StepTag(1), slot.tensor(), held, *slot.done);
  auto sent = a.Send(Activation(0), 1, {4});
  EXPECT_TRUE(sent->StaysPending());
  EXPECT_EQ(slot.values[0], 3);
  held.RunAll();
  EXPECT_OK(slot.Await());
  EXPECT_OK(sent->Await());
  EXPECT_EQ(slot.values[0], 4);
}

TEST_P(DeliveryTest, MessagesGoInTheOrderOfTheCallsNotOfTheStreams) {
  const std::vector<Link> links = {{Activation(0), 0, 1, 2}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  HeldStream held;
  Message first{.values = {1}, .done = std::move(a->CreateEvent()).value()};
  a->Send(Activation(0), StepTag(1), first.tensor(), held, *first.done);
  auto second = a.Send(Activation(0), 2, {2});
  auto first_in = b.Receive(Activation(0), 1, 1);
  auto second_in = b.Receive(Activation(0), 2, 1);
  EXPECT_TRUE(second->StaysPending());
  held.RunAll();
  EXPECT_OK(first_in->Await());
  EXPECT_OK(second_in->Await());
  EXPECT_OK(first.Await());
  EXPECT_OK(second->Await());
  EXPECT_EQ(second_in->values[0], 2);
}

TEST_P(DeliveryTest, WhatIsHeldGoesWhileItsSenderDoesSomethingElse) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  a->StepAside();
  for (int step = 1; step <= 3; ++step) {
    auto sent = a.Send(Activation(0), step, {1});
    EXPECT_THAT(sent->done->Await(absl::Now()),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    a->StepAside();
    EXPECT_OK(b.Receive(Activation(0), step, 1)->Await());
    EXPECT_OK(sent->Await());
  }
}

TEST_P(DeliveryTest, AnEventCanBeUsedAgain) {
  const std::vector<Link> links = {{Activation(0), 0, 1}};
  Rank a(*world_, 0, links), b(*world_, 1, links);
  Message sent{.values = {0}, .done = std::move(a->CreateEvent()).value()};
  Message slot{.values = {0}, .done = std::move(b->CreateEvent()).value()};
  for (int step = 0; step < 3; ++step) {
    sent.values[0] = step;
    a->Send(Activation(0), StepTag(step), sent.tensor(), a.stream(),
            *sent.done);
    b->Receive(Activation(0), StepTag(step), slot.tensor(), b.stream(),
               *slot.done);
    ASSERT_OK(slot.Await());
    ASSERT_OK(sent.Await());
    EXPECT_EQ(slot.values[0], step);
  }
}

}  // namespace
}  // namespace penstock::testing
