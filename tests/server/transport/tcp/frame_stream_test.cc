// Frames and payloads as a stream of bytes, in every kind of pieces.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "server/transport/tcp/frame_reader.h"
#include "server/transport/tcp/frame_writer.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::transport::tcp {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

constexpr size_t kAll = 1 << 20;

// An operation with its memory and event.
struct Item {
  Item(int64_t step, size_t count, float value) : values(count, value) {
    operation->tag = {.epoch = 1, .step = step};
    operation->tensor =
        device::Tensor(values.data(), device::DType::kF32,
                       device::Shape({static_cast<int64_t>(count)}));
    operation->done = &done;
    operation->ready = true;
    done.Reset();
  }

  std::vector<float> values;
  device::HostEvent done;
  std::shared_ptr<Operation> operation = std::make_shared<Operation>();
};

// Takes at most `most` bytes of what is to write.
std::vector<std::byte> Take(FrameWriter& writer, size_t most, size_t budget) {
  std::vector<std::byte> bytes;
  if (!writer.Begin()) return bytes;
  const ByteParts parts = writer.Left(budget);
  for (int i = 0; i < parts.count; ++i) {
    const auto* from = static_cast<const std::byte*>(parts.list[i].iov_base);
    bytes.insert(bytes.end(), from, from + parts.list[i].iov_len);
  }
  bytes.resize(std::min(bytes.size(), most));
  writer.Wrote(bytes.size());
  return bytes;
}

std::vector<std::byte> TakeAll(FrameWriter& writer) {
  std::vector<std::byte> all;
  for (auto part = Take(writer, kAll, kAll); !part.empty();
       part = Take(writer, kAll, kAll)) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// One read: as many of `bytes` as there is space for, but at most `most`.
absl::Status Give(FrameReader& reader, std::deque<std::byte>& bytes,
                  size_t most, size_t budget) {
  const ByteParts parts = reader.Space(budget);
  EXPECT_GT(parts.bytes, 0u);
  size_t count = 0;
  for (int i = 0; i < parts.count; ++i) {
    auto* to = static_cast<std::byte*>(parts.list[i].iov_base);
    for (size_t k = 0; k < parts.list[i].iov_len; ++k) {
      if (count == most || bytes.empty()) break;
      to[k] = bytes.front();
      bytes.pop_front();
      ++count;
    }
  }
  return reader.Came(count);
}

absl::Status GiveAll(FrameReader& reader, const std::vector<std::byte>& from) {
  std::deque<std::byte> bytes(from.begin(), from.end());
  while (!bytes.empty()) {
    const absl::Status status = Give(reader, bytes, kAll, kAll);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Both ends of an edge with `count` messages of different sizes, some empty.
struct Ends {
  explicit Ends(int count) {
    for (int i = 0; i < count; ++i) {
      const size_t size = i % 3 == 2 ? 0 : 7 * i + 1;
      sent.push_back(std::make_unique<Item>(i, size, i + 1.0f));
      slots.push_back(std::make_unique<Item>(i, size, 0.0f));
      source.Add(sent.back()->operation);
      target.Add(slots.back()->operation);
    }
  }
  // What must hold once all messages went through.
  void ExpectDelivered() {
    for (size_t i = 0; i < sent.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_TRUE(sent[i]->done.Done());
      EXPECT_TRUE(slots[i]->done.Done());
      EXPECT_EQ(slots[i]->values, sent[i]->values);
    }
  }

  SourceProtocol source;
  TargetProtocol target;
  std::vector<std::unique_ptr<Item>> sent, slots;
  FrameWriter source_out{source}, target_out{target};
  FrameReader source_in{source}, target_in{target};
};

TEST(FrameStreamTest, PiecesOfAnySizeGiveTheSameMessages) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    // Small pieces in some rounds, whole frames and more in others.
    const size_t largest = 1 + random() % (seed % 2 == 0 ? 20 : 2000);
    Ends ends(20);
    std::deque<std::byte> to_target, to_source;
    for (int round = 0;
         round < 100'000 && ends.target.pending() + ends.source.pending() > 0;
         ++round) {
      for (const std::byte byte : Take(ends.source_out, 1 + random() % largest,
                                       random() % (largest + 1))) {
        to_target.push_back(byte);
      }
      for (const std::byte byte :
           Take(ends.target_out, 1 + random() % largest, kAll)) {
        to_source.push_back(byte);
      }
      if (!to_target.empty()) {
        ASSERT_OK(Give(ends.target_in, to_target, 1 + random() % largest,
                       1 + random() % largest));
      }
      if (!to_source.empty()) {
        ASSERT_OK(Give(ends.source_in, to_source, 1 + random() % largest,
                       1 + random() % largest));
      }
    }
    ends.ExpectDelivered();
  }
}

TEST(FrameStreamTest, OneReadTakesAMessageAndTheNextHeader) {
  Ends ends(2);
  ASSERT_OK(GiveAll(ends.source_in, TakeAll(ends.target_out)));
  const std::vector<std::byte> both = TakeAll(ends.source_out);
  ASSERT_EQ(both.size(), 2 * kFrameBytes + 4 + 32);
  std::deque<std::byte> bytes(both.begin(), both.end());
  ASSERT_OK(Give(ends.target_in, bytes, kAll, kAll));
  EXPECT_EQ(bytes.size(), 32u);  // All but the second payload.
  EXPECT_EQ(ends.slots[0]->values, ends.sent[0]->values);
  EXPECT_EQ(ends.target_in.missing(), 32u);
  ASSERT_OK(Give(ends.target_in, bytes, kAll, kAll));
  EXPECT_EQ(ends.target_in.missing(), 0u);
  EXPECT_EQ(ends.slots[1]->values, ends.sent[1]->values);
}

TEST(FrameStreamTest, ABudgetBoundsWhatIsTakenOfAPayload) {
  Ends ends(2);
  ASSERT_OK(GiveAll(ends.source_in, TakeAll(ends.target_out)));
  EXPECT_FALSE(ends.source_out.midway());
  ASSERT_TRUE(ends.source_out.Begin());
  EXPECT_TRUE(ends.source_out.midway());
  EXPECT_EQ(ends.source_out.Left(1).bytes, kFrameBytes + 1);
  EXPECT_EQ(ends.source_out.Wrote(kFrameBytes + 1), 1u);
  EXPECT_EQ(ends.source_out.Left(kAll).bytes, 3u);
  EXPECT_EQ(ends.source_out.Wrote(3), 3u);
  EXPECT_FALSE(ends.source_out.midway());
  // The header, 3 bytes of the slot, and no header behind them.
  EXPECT_EQ(ends.target_in.Space(3).bytes, kFrameBytes + 3);
  EXPECT_EQ(ends.target_in.Space(4).bytes, kFrameBytes + 4 + kFrameBytes);
}

TEST(FrameStreamTest, AGoodbyeWhileASlotIsPostedIsRefused) {
  // The byte behind it comes to lie in the slot, and belongs to nothing.
  Ends ends(1);
  ASSERT_OK(GiveAll(ends.source_in, TakeAll(ends.target_out)));
  const FrameBytes goodbye = EncodeFrame({.type = FrameType::kGoodbye});
  std::deque<std::byte> bytes(goodbye.begin(), goodbye.end());
  bytes.push_back(std::byte{1});
  const absl::Status status = Give(ends.target_in, bytes, kAll, kAll);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("said goodbye while a message was pending")));
  EXPECT_FALSE(ends.slots[0]->done.Done());
  ends.target.FailAll(status);
}

TEST(FrameStreamTest, AFrameBehindAGoodbyeIsRefused) {
  Ends ends(0);
  const FrameBytes goodbye = EncodeFrame({.type = FrameType::kGoodbye});
  std::vector<std::byte> bytes(goodbye.begin(), goodbye.end());
  bytes.insert(bytes.end(), goodbye.begin(), goodbye.end());
  EXPECT_THAT(GiveAll(ends.target_in, bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("sent a frame after its goodbye")));
}

TEST(FrameStreamTest, AMalformedHeaderIsRefusedHoweverItComes) {
  for (const size_t piece : {size_t{1}, size_t{20}, kAll}) {
    Ends ends(1);
    ASSERT_OK(GiveAll(ends.source_in, TakeAll(ends.target_out)));
    std::vector<std::byte> sent = TakeAll(ends.source_out);
    sent[9] ^= std::byte{4};
    std::deque<std::byte> bytes(sent.begin(), sent.end());
    absl::Status status;
    while (status.ok() && !bytes.empty()) {
      status = Give(ends.target_in, bytes, piece, kAll);
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr("malformed frame")));
  }
}

}  // namespace
}  // namespace penstock::server::transport::tcp
