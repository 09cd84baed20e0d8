// That the fake is what it claims: late, ordered only by events, and live.
#include "tests/fakes/async_device/async_device.h"

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "gtest/gtest.h"
#include "server/device/host_event.h"
#include "server/device/ops.h"
#include "server/device/reference/factory.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::tests::fakes {
namespace {

using namespace server::device;  // NOLINT: the vocabulary of every line here.
using ::penstock::testing::StatusIs;
using Schedule = AsyncDeviceOptions::Schedule;

class AsyncDeviceTest : public ::testing::Test {
 protected:
  AsyncDeviceTest() : device_(Make(Schedule::kLazy)) {}

  static std::unique_ptr<Device> Make(Schedule schedule) {
    auto reference = reference::CreateReferenceDevice();
    EXPECT_OK(reference.status());
    return CreateAsyncDevice({.schedule = schedule}, *std::move(reference));
  }
  std::unique_ptr<Stream> NewStream() {
    auto stream = device_->CreateStream();
    EXPECT_OK(stream.status());
    return *std::move(stream);
  }
  std::unique_ptr<Event> NewEvent() {
    auto event = device_->CreateEvent();
    EXPECT_OK(event.status());
    return *std::move(event);
  }
  // One f32 of device memory.
  Tensor NewScalar() {
    auto buffer = device_->Allocate(4, MemoryUse::kWorkspace);
    EXPECT_OK(buffer.status());
    buffers_.push_back(*std::move(buffer));
    return Tensor(buffers_.back()->data(), DType::kF32, Shape({1}));
  }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

TEST_F(AsyncDeviceTest, LazyWorkWaitsUntilItIsNeeded) {
  const auto stream = NewStream();
  const Tensor x = NewScalar();
  device_->ops().Fill(*stream, {.y = x, .value = 1});
  // Nobody needs it yet: the stream's thread has not touched the memory.
  EXPECT_TRUE(std::isnan(*x.f32()));
  ASSERT_OK(stream->Synchronize(absl::InfiniteFuture()));
  EXPECT_EQ(*x.f32(), 1);
}

TEST_F(AsyncDeviceTest, AMissingWaitReadsWhatWasNotComputed) {
  for (const bool wait : {false, true}) {
    const auto producer = NewStream(), consumer = NewStream();
    const auto event = NewEvent();
    const Tensor x = NewScalar(), y = NewScalar();
    device_->ops().Fill(*producer, {.y = x, .value = 1});
    producer->Record(*event);
    if (wait) consumer->Wait(*event);
    device_->ops().Copy(*consumer, {.x = x, .y = y});
    ASSERT_OK(consumer->Synchronize(absl::InfiniteFuture()));
    EXPECT_EQ(std::isnan(*y.f32()), !wait);
    ASSERT_OK(producer->Synchronize(absl::InfiniteFuture()));
  }
}

TEST_F(AsyncDeviceTest, DemandRunsThroughChainsOfStreams) {
  const auto a = NewStream(), b = NewStream(), c = NewStream();
  const auto first = NewEvent(), second = NewEvent();
  const Tensor x = NewScalar(), y = NewScalar(), z = NewScalar();
  device_->ops().Fill(*a, {.y = x, .value = 3});
  a->Record(*first);
  b->Wait(*first);
  device_->ops().Add(*b, {.a = x, .b = x, .y = y});
  b->Record(*second);
  c->Wait(*second);
  device_->ops().Add(*c, {.a = y, .b = y, .y = z});
  ASSERT_OK(c->Synchronize(absl::InfiniteFuture()));
  EXPECT_EQ(*z.f32(), 12);
}

TEST_F(AsyncDeviceTest, AWaitIsForTheRecordBeforeIt) {
  const auto producer = NewStream(), consumer = NewStream();
  const auto event = NewEvent();
  HostEvent never;
  never.Reset();
  producer->Record(*event);
  consumer->Wait(*event);
  producer->Wait(never);
  producer->Record(*event);  // Pending for long; the wait above is not for it.
  ASSERT_OK(consumer->Synchronize(absl::InfiniteFuture()));
  EXPECT_FALSE(event->Done());
  never.Signal(absl::OkStatus());
  ASSERT_OK(producer->Synchronize(absl::InfiniteFuture()));
  EXPECT_TRUE(event->Done());
}

TEST_F(AsyncDeviceTest, DeadlinesPassOnAPendingStream) {
  const auto stream = NewStream();
  const auto event = NewEvent();
  HostEvent never;
  never.Reset();
  stream->Wait(never);
  stream->Record(*event);
  EXPECT_THAT(stream->Synchronize(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(event->Await(absl::InfinitePast()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_OK(stream->status());
  never.Signal(absl::AbortedError("over"));
  EXPECT_THAT(stream->Synchronize(absl::InfiniteFuture()),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(AsyncDeviceTest, PollingAnEventIsEnough) {
  const auto stream = NewStream();
  const auto event = NewEvent();
  const Tensor x = NewScalar();
  device_->ops().Fill(*stream, {.y = x, .value = 5});
  stream->Record(*event);
  while (!event->Done()) std::this_thread::yield();
  EXPECT_EQ(*x.f32(), 5);
}

TEST_F(AsyncDeviceTest, ACallRunsWithoutBeingWaitedFor) {
  const auto stream = NewStream();
  common::sync::Notification called;
  stream->Call([&](const absl::Status&) { called.Notify(); });
  called.WaitForNotification();
}

}  // namespace
}  // namespace penstock::tests::fakes
