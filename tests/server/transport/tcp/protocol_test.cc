// The rules of an edge, driven frame by frame.
#include "server/transport/tcp/protocol.h"

#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// An operation with its memory and event.
struct Item {
  explicit Item(int64_t step) : values(4, 0.0f) {
    operation->tag = {.epoch = 1, .step = step};
    operation->tensor =
        device::Tensor(values.data(), device::DType::kF32, device::Shape({4}));
    operation->done = &done;
    operation->ready = true;
    done.Reset();
  }

  std::vector<float> values;
  common::time::RealClock clock;
  device::HostEvent done{clock};
  std::shared_ptr<Operation> operation = std::make_shared<Operation>();
};

Frame Grant(uint64_t granted, uint64_t received) {
  return {.type = FrameType::kGrant, .granted = granted, .received = received};
}

Frame MessageOf(Item& item, uint32_t number) {
  return {.type = FrameType::kMessage,
          .tag = item.operation->tag,
          .payload_bytes = 16,
          .form_digest = FormDigest(item.operation->tensor),
          .number = number};
}

const Frame kGoodbye = {.type = FrameType::kGoodbye};

TEST(SourceProtocolTest, NothingIsSentWithoutAGrant) {
  SourceProtocol source;
  Item item(1);
  source.Add(item.operation);
  EXPECT_FALSE(source.Next().has_value());
  ASSERT_THAT(source.OnFrame(Grant(1, 0)), IsOk());
  const std::optional<Outgoing> sent = source.Next();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(DecodeFrame(sent->header).value(), MessageOf(item, 0));
  EXPECT_EQ(sent->payload.size(), 16u);
  EXPECT_EQ(static_cast<const void*>(sent->payload.data()), item.values.data());
  EXPECT_FALSE(source.Next().has_value());
}

TEST(SourceProtocolTest, AMessageIsCompleteSinceWordOfItCame) {
  SourceProtocol source;
  Item noted(1), read(2);
  source.Add(noted.operation);
  source.Add(read.operation);
  ASSERT_THAT(source.OnFrame(Grant(2, 0)), IsOk());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(source.Next().has_value());
    source.OnWritten();
  }
  const auto came = read.clock.Monotonic() - absl::Seconds(1);
  source.NoteArrival(came);
  ASSERT_THAT(source.OnFrame(Grant(2, 1)), IsOk());
  EXPECT_EQ(noted.done.done_at(), came);
  source.NoteArrival(std::nullopt);
  ASSERT_THAT(source.OnFrame(Grant(2, 2)), IsOk());
  EXPECT_GT(read.done.done_at(), came);
}

TEST(SourceProtocolTest, AMessageIsCompleteWhenItWasReceived) {
  SourceProtocol source;
  Item item(1);
  source.Add(item.operation);
  ASSERT_THAT(source.OnFrame(Grant(1, 0)), IsOk());
  ASSERT_TRUE(source.Next().has_value());
  source.OnWritten();
  EXPECT_FALSE(item.done.Done());
  ASSERT_THAT(source.OnFrame(Grant(1, 1)), IsOk());
  EXPECT_TRUE(item.done.Done());
  EXPECT_EQ(source.pending(), 0u);
}

TEST(SourceProtocolTest, AMessageHalfWrittenIsNotReceived) {
  SourceProtocol source;
  Item item(1);
  source.Add(item.operation);
  ASSERT_THAT(source.OnFrame(Grant(1, 0)), IsOk());
  ASSERT_TRUE(source.Next().has_value());  // OnWritten() has not come.
  EXPECT_THAT(source.OnFrame(Grant(1, 1)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("impossible")));
  source.FailAll(absl::CancelledError("end of test"));
}

TEST(SourceProtocolTest, GrantsNeverGoBack) {
  SourceProtocol source;
  ASSERT_THAT(source.OnFrame(Grant(5, 0)), IsOk());
  EXPECT_THAT(source.OnFrame(Grant(4, 0)),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(SourceProtocolTest, FramesOfTheOtherDirectionAreRefused) {
  SourceProtocol source;
  Item item(1);
  EXPECT_THAT(source.OnFrame(MessageOf(item, 0)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("direction")));
  TargetProtocol target;
  EXPECT_THAT(target.OnFrame(Grant(1, 0)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("direction")));
  item.done.Signal(absl::OkStatus());
}

TEST(TargetProtocolTest, GrantsASlotOnlyWhenAllBeforeItAreReady) {
  TargetProtocol target;
  Item first(1), second(2);
  first.operation->ready = false;
  target.Add(first.operation);
  target.Add(second.operation);
  EXPECT_FALSE(target.Next().has_value());
  EXPECT_TRUE(target.Slot().empty());
  first.operation->ready = true;
  EXPECT_EQ(DecodeFrame(target.Next()->header).value(), Grant(2, 0));
  EXPECT_EQ(target.Slot().size(), 16u);
  target.FailAll(absl::CancelledError("end of test"));
}

TEST(TargetProtocolTest, AMessageCompletesItsSlotAndIsAcknowledged) {
  TargetProtocol target;
  Item item(1);
  target.Add(item.operation);
  ASSERT_TRUE(target.Next().has_value());
  target.OnWritten();
  ASSERT_THAT(target.OnFrame(MessageOf(item, 0)), IsOk());
  EXPECT_FALSE(item.done.Done());
  target.OnPayload();
  EXPECT_TRUE(item.done.Done());
  EXPECT_EQ(DecodeFrame(target.Next()->header).value(), Grant(1, 1));
}

TEST(TargetProtocolTest, UnexpectedMessagesAreRefused) {
  Item item(1), other(2);
  TargetProtocol target;
  EXPECT_THAT(
      target.OnFrame(MessageOf(item, 0)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no slot is posted")));
  target.Add(item.operation);
  ASSERT_TRUE(target.Next().has_value());
  EXPECT_THAT(target.OnFrame(MessageOf(item, 1)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("number 1")));
  EXPECT_THAT(target.OnFrame(MessageOf(other, 0)),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("step 2")));
  Frame longer = MessageOf(item, 0);
  longer.payload_bytes = 17;
  EXPECT_THAT(target.OnFrame(longer),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("17 bytes")));
  target.FailAll(absl::CancelledError("end of test"));
  other.done.Signal(absl::OkStatus());
}

TEST(TargetProtocolTest, WordOfSmallMessagesWaitsForAQuarterOfTheGrants) {
  TargetProtocol target;
  std::vector<std::unique_ptr<Item>> items;
  for (int step = 0; step < 7; ++step) {
    items.push_back(std::make_unique<Item>(step));
  }
  for (int i = 0; i < 4; ++i) target.Add(items[i]->operation);
  EXPECT_EQ(target.urgency(), Protocol::Urgency::kNow);
  ASSERT_TRUE(target.Next().has_value());
  EXPECT_EQ(target.urgency(), Protocol::Urgency::kNone);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(target.OnFrame(MessageOf(*items[i], i)), IsOk());
    target.OnPayload();
    EXPECT_EQ(target.urgency(), Protocol::Urgency::kMayWait);
    target.Add(items[4 + i]->operation);
    EXPECT_EQ(target.urgency(),
              i < 2 ? Protocol::Urgency::kMayWait : Protocol::Urgency::kNow);
  }
  EXPECT_EQ(DecodeFrame(target.Next()->header).value(), Grant(7, 3));
  target.FailAll(absl::CancelledError("end of test"));
}

TEST(ProtocolTest, GoodbyeFollowsWhatIsPending) {
  SourceProtocol source;
  Item item(1);
  source.Add(item.operation);
  source.SayGoodbye();
  EXPECT_FALSE(source.Next().has_value());
  ASSERT_THAT(source.OnFrame(Grant(1, 0)), IsOk());
  ASSERT_TRUE(source.Next().has_value());
  source.OnWritten();
  ASSERT_THAT(source.OnFrame(Grant(1, 1)), IsOk());
  EXPECT_EQ(DecodeFrame(source.Next()->header).value(), kGoodbye);
  source.OnWritten();
  EXPECT_FALSE(source.closed());
  ASSERT_THAT(source.OnFrame(kGoodbye), IsOk());
  EXPECT_TRUE(source.closed());
  EXPECT_THAT(source.OnFrame(kGoodbye),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("after")));
}

TEST(ProtocolTest, AGoodbyeWhileAMessageIsPendingIsAFailure) {
  TargetProtocol target;
  Item item(1);
  target.Add(item.operation);
  EXPECT_THAT(target.OnFrame(kGoodbye), StatusIs(absl::StatusCode::kUnavailable,
                                                 HasSubstr("said goodbye")));
  target.FailAll(absl::CancelledError("end of test"));
}

TEST(ProtocolTest, EightyThousandWrongFramesNeitherCrashNorComplete) {
  std::mt19937 random(4);
  Item item(1);
  for (int i = 0; i < 80'000; ++i) {
    SourceProtocol source;
    TargetProtocol target;
    const bool to_target = random() % 2 == 0;
    Protocol& protocol = to_target ? static_cast<Protocol&>(target) : source;
    protocol.Add(item.operation);
    (void)protocol.Next();
    // A wrong field behind a right checksum, so that the rules must find it.
    Frame frame = MessageOf(item, 0);
    absl::StatusCode code = absl::StatusCode::kDataLoss;
    std::string words = "sent a message against the edge's direction";
    const auto at_target = [&](absl::StatusCode of_target, const char* rule) {
      if (to_target) std::tie(code, words) = std::pair(of_target, rule);
    };
    switch (random() % 6) {
      case 0:
        frame.tag.step += 1 + random() % 9;
        at_target(absl::StatusCode::kInternal, "was expected");
        break;
      case 1:
        frame.payload_bytes = 17 + random();
        at_target(absl::StatusCode::kInternal, "of another type or shape");
        break;
      case 2:
        frame.form_digest ^= 1 + random();
        at_target(absl::StatusCode::kInternal, "of another type or shape");
        break;
      case 3:
        frame.number = 1 + random() % 1000;
        at_target(absl::StatusCode::kDataLoss, "sent message number");
        break;
      case 4:
        frame = Grant(random() % 3, 1 + random() % 3);
        words = to_target ? "sent a grant against the edge's direction"
                          : "sent an impossible grant";
        break;
      default:
        frame = kGoodbye;
        code = absl::StatusCode::kUnavailable;
        words = "said goodbye while a message was pending";
        break;
    }
    const absl::StatusOr<Frame> decoded = DecodeFrame(EncodeFrame(frame));
    ASSERT_THAT(decoded, IsOk());
    ASSERT_THAT(protocol.OnFrame(*decoded), StatusIs(code, HasSubstr(words)))
        << i;
    ASSERT_FALSE(item.done.Done()) << i;
    protocol.FailAll(absl::CancelledError("end of round"));
    item.operation->closed = false;
    item.done.Reset();
  }
  item.done.Signal(absl::OkStatus());
}

TEST(ProtocolTest, DescribeSaysWhatWasUnderWay) {
  SourceProtocol source;
  Item item(3);
  EXPECT_THAT(source.Describe(), HasSubstr("nothing"));
  source.Add(item.operation);
  EXPECT_THAT(source.Describe(), HasSubstr("step 3 micro-batch 0 waited"));
  ASSERT_THAT(source.OnFrame(Grant(1, 0)), IsOk());
  ASSERT_TRUE(source.Next().has_value());
  EXPECT_THAT(source.Describe(), HasSubstr("in the middle of sending epoch 1"));
  source.OnWritten();
  EXPECT_THAT(source.Describe(), HasSubstr("sent but not yet received"));
  source.FailAll(absl::CancelledError("end of test"));
}

}  // namespace
}  // namespace penstock::server::transport::tcp
