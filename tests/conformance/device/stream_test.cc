// Streams, events, copies and memory: what device.h promises.
#include <cstring>
#include <thread>

#include "server/device/host_event.h"
#include "tests/conformance/device/device_suite.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kForever = absl::InfiniteFuture;

std::unique_ptr<Stream> NewStream(Device& device) {
  auto stream = device.CreateStream();
  EXPECT_OK(stream.status());
  return *std::move(stream);
}

std::unique_ptr<Event> NewEvent(Device& device) {
  auto event = device.CreateEvent();
  EXPECT_OK(event.status());
  return *std::move(event);
}

TEST_P(DeviceTest, MemoryIsAlignedAndMayBeEmpty) {
  for (const MemoryUse use : {MemoryUse::kWorkspace, MemoryUse::kPinnedHost}) {
    for (const int64_t bytes : {0, 1, 1000}) {
      ASSERT_OK_AND_ASSIGN(const auto buffer, device().Allocate(bytes, use));
      EXPECT_NE(buffer->data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0);
      EXPECT_EQ(buffer->bytes(), bytes);
    }
  }
}

TEST_P(DeviceTest, MemoryIsCountedByUse) {
  const MemoryUsage before = device().memory();
  const auto count = [&](MemoryUse use) { return device().memory().of(use); };
  for (int i = 0; i < kMemoryUses; ++i) {
    const auto use = static_cast<MemoryUse>(i);
    const MemoryCount start = before.of(use);
    {
      ASSERT_OK_AND_ASSIGN(const auto first, device().Allocate(1000, use));
      ASSERT_OK_AND_ASSIGN(const auto second, device().Allocate(24, use));
      EXPECT_EQ(count(use).bytes, start.bytes + 1024);
    }
    EXPECT_EQ(count(use).bytes, start.bytes);
    ASSERT_OK_AND_ASSIGN(const auto third, device().Allocate(8, use));
    EXPECT_EQ(count(use).bytes, start.bytes + 8);
    EXPECT_GE(count(use).peak_bytes, start.bytes + 1024);
    EXPECT_EQ(count(use).allocations, start.allocations + 3);
    EXPECT_EQ(device().memory().device_bytes(),
              before.device_bytes() + (use == MemoryUse::kPinnedHost ? 0 : 8));
  }
}

TEST_P(DeviceTest, TooMuchMemoryIsResourceExhausted) {
  EXPECT_THAT(device().Allocate(int64_t{1} << 60, MemoryUse::kWorkspace),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1152921504606846976")));
}

TEST_P(DeviceTest, CopiesGoThereAndBack) {
  ASSERT_OK_AND_ASSIGN(const auto in,
                       device().Allocate(1000, MemoryUse::kPinnedHost));
  ASSERT_OK_AND_ASSIGN(const auto on_device,
                       device().Allocate(1000, MemoryUse::kWorkspace));
  ASSERT_OK_AND_ASSIGN(const auto out,
                       device().Allocate(1000, MemoryUse::kPinnedHost));
  for (int i = 0; i < 1000; ++i) in->data()[i] = std::byte(i * 7);
  const auto stream = NewStream(device());
  device().CopyToDevice(*stream, on_device->data(), in->data(), 1000);
  device().CopyToDevice(*stream, on_device->data(), in->data() + 500, 0);
  device().CopyToHost(*stream, out->data(), on_device->data(), 1000);
  ASSERT_OK(stream->Synchronize(kForever()));
  EXPECT_EQ(std::memcmp(in->data(), out->data(), 1000), 0);
}

TEST_P(DeviceTest, EventThatWasNeverRecordedIsDone) {
  const auto event = NewEvent(device());
  EXPECT_TRUE(event->Done());
  EXPECT_OK(event->Await(kForever()));
}

TEST_P(DeviceTest, RecordedEventsFollowTheWork) {
  Harness h(device());
  const auto event = NewEvent(device());
  const Tensor y = h.Out(Shape({1000}));
  ASSERT_OK_AND_ASSIGN(const auto host,
                       device().Allocate(4000, MemoryUse::kPinnedHost));
  for (const float value : {1.0f, 2.0f, 3.0f}) {  // Recorded again each time.
    h.ops().Fill(h.stream(), {.y = y, .value = value});
    device().CopyToHost(h.stream(), host->data(),
                        static_cast<const std::byte*>(y.data()), 4000);
    h.stream().Record(*event);
    ASSERT_OK(event->Await(kForever()));
    EXPECT_TRUE(event->Done());
    float last;
    std::memcpy(&last, host->data() + 3996, 4);
    EXPECT_EQ(last, value);
  }
}

// A chain over two streams, long enough for a wrong order to show.
TEST_P(DeviceTest, AWaitOrdersTwoStreams) {
  Harness h(device());
  const auto other = NewStream(device());
  const auto there = NewEvent(device()), back = NewEvent(device());
  const Shape shape({4096});
  const Tensor x = h.InOut(shape, std::vector<float>(4096, 1));
  const Tensor y = h.Out(shape);
  for (int round = 0; round < 10; ++round) {
    h.ops().Add(h.stream(), {.a = x, .b = x, .y = x});
    h.stream().Record(*there);
    other->Wait(*there);
    h.ops().Copy(*other, {.x = x, .y = y});
    h.ops().Copy(*other, {.x = y, .y = x});
    other->Record(*back);
    h.stream().Wait(*back);
  }
  EXPECT_EQ(h.Read(y), std::vector<double>(4096, 1024));
}

TEST_P(DeviceTest, AWaitOnAHostEventOrdersHostAndStream) {
  Harness h(device());
  ASSERT_OK_AND_ASSIGN(const auto message,
                       device().Allocate(4, MemoryUse::kPinnedHost));
  HostEvent arrived;
  arrived.Reset();
  std::thread transport([&] {
    const float value = 42;
    std::memcpy(message->data(), &value, 4);
    arrived.Signal(absl::OkStatus());
  });
  const Tensor y = h.Out(Shape({1}));
  h.stream().Wait(arrived);
  device().CopyToDevice(h.stream(), static_cast<std::byte*>(y.data()),
                        message->data(), 4);
  EXPECT_THAT(h.Read(y), ElementsAre(42));
  transport.join();
}

TEST_P(DeviceTest, AFailedEventFailsTheStreamAndWhoWaitsForIt) {
  Harness h(device());
  const Tensor y = h.InOut(Shape({1}), {1});
  const auto first = NewStream(device());
  const auto second = NewStream(device());
  HostEvent receive;
  receive.Reset();
  receive.Signal(absl::UnavailableError("peer 3 is gone"));
  first->Wait(receive);
  h.ops().Fill(*first, {.y = y, .value = 7});
  const auto event = NewEvent(device());
  first->Record(*event);
  const auto gone =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("peer 3 is gone"));
  EXPECT_THAT(event->Await(kForever()), gone);
  EXPECT_TRUE(event->Done());
  second->Wait(*event);
  h.ops().Fill(*second, {.y = y, .value = 8});
  EXPECT_THAT(first->Synchronize(kForever()), gone);
  EXPECT_THAT(second->Synchronize(kForever()), gone);
  EXPECT_THAT(first->status(), gone);
  EXPECT_THAT(h.Read(y), ElementsAre(1));  // Nothing ran after the failure.
}

TEST_P(DeviceTest, AFailedStreamStaysFailedWithItsFirstFailure) {
  const auto stream = NewStream(device());
  HostEvent first, second, good;
  first.Reset();
  first.Signal(absl::AbortedError("the first"));
  second.Reset();
  second.Signal(absl::UnavailableError("a later one"));
  stream->Wait(first);
  stream->Wait(second);
  stream->Wait(good);
  EXPECT_THAT(stream->Synchronize(kForever()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("the first")));
}

TEST_P(DeviceTest, CallsRunInOrderAfterTheWork) {
  Harness h(device());
  ASSERT_OK_AND_ASSIGN(const auto host,
                       device().Allocate(4, MemoryUse::kPinnedHost));
  const Tensor y = h.Out(Shape({1}));
  std::vector<float> seen;  // Ordered by Synchronize.
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    h.ops().Fill(h.stream(), {.y = y, .value = value});
    device().CopyToHost(h.stream(), host->data(),
                        static_cast<const std::byte*>(y.data()), 4);
    h.stream().Call([&](const absl::Status& status) {
      EXPECT_OK(status);
      float now;
      std::memcpy(&now, host->data(), 4);
      seen.push_back(now);
    });
  }
  ASSERT_OK(h.stream().Synchronize(kForever()));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

TEST_P(DeviceTest, CallsOnAFailedStreamGetItsStatus) {
  const auto stream = NewStream(device());
  HostEvent bad;
  bad.Reset();
  bad.Signal(absl::AbortedError("epoch 4 is over"));
  std::vector<absl::Status> seen;
  stream->Call([&](const absl::Status& status) { seen.push_back(status); });
  stream->Wait(bad);
  stream->Call([&](const absl::Status& status) { seen.push_back(status); });
  EXPECT_THAT(stream->Synchronize(kForever()),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(seen, ElementsAre(IsOk(), StatusIs(absl::StatusCode::kAborted)));
}

TEST_P(DeviceTest, CopiesOnAFailedStreamAreSkipped) {
  const auto stream = NewStream(device());
  ASSERT_OK_AND_ASSIGN(const auto a,
                       device().Allocate(1, MemoryUse::kPinnedHost));
  ASSERT_OK_AND_ASSIGN(const auto b,
                       device().Allocate(1, MemoryUse::kPinnedHost));
  ASSERT_OK_AND_ASSIGN(const auto on_device,
                       device().Allocate(1, MemoryUse::kWorkspace));
  *a->data() = std::byte{1};
  *b->data() = std::byte{2};
  HostEvent bad;
  bad.Reset();
  bad.Signal(absl::AbortedError("over"));
  device().CopyToDevice(*stream, on_device->data(), a->data(), 1);
  stream->Wait(bad);
  device().CopyToHost(*stream, b->data(), on_device->data(), 1);
  EXPECT_THAT(stream->Synchronize(kForever()),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(*b->data(), std::byte{2});
}

TEST_P(DeviceTest, KindAndNumericsIdAreTold) {
  EXPECT_FALSE(device().kind().empty());
  EXPECT_FALSE(device().numerics_id().empty());
}

}  // namespace
}  // namespace penstock::server::device
