// What only the inline devices promise; the conformance suite has the rest.
#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include "server/device/host/host_memory.h"
#include "server/device/ops.h"
#include "server/device/reference/factory.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device::host {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

TEST(HostMemoryTest, IsAlignedAndFilledWithNans) {
  ASSERT_OK_AND_ASSIGN(const auto buffer,
                       HostMemory().Allocate(40, MemoryUse::kWorkspace));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0);
  EXPECT_EQ(buffer->bytes(), 40);
#if PENSTOCK_FILL_NEW_BUFFERS
  float values[10];
  std::memcpy(values, buffer->data(), sizeof(values));
  for (const float value : values) EXPECT_NE(value, value);
#endif
}

TEST(HostMemoryTest, NoBytesStillHaveAnAddress) {
  ASSERT_OK_AND_ASSIGN(const auto buffer,
                       HostMemory().Allocate(0, MemoryUse::kWorkspace));
  EXPECT_NE(buffer->data(), nullptr);
}

TEST(HostMemoryTest, MoreThanTheMachineHasIsResourceExhausted) {
  EXPECT_THAT(HostMemory().Allocate(int64_t{1} << 60, MemoryUse::kWorkspace),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1152921504606846976 bytes")));
}

TEST(HostDeviceTest, OpsFlushDenormalsOnWhateverThreadCallsThem) {
  ASSERT_OK_AND_ASSIGN(const auto device, reference::CreateReferenceDevice());
  ASSERT_OK_AND_ASSIGN(const auto stream, device->CreateStream());
  alignas(64) float a[1] = {1e-30f}, b[1] = {1e-15f}, y[1] = {1};
  std::thread thread([&] {
    const Shape shape({1});
    device->ops().Multiply(*stream, {.a = Tensor(a, DType::kF32, shape),
                                     .b = Tensor(b, DType::kF32, shape),
                                     .y = Tensor(y, DType::kF32, shape)});
  });
  thread.join();
  EXPECT_EQ(y[0], 0.0f);
}

}  // namespace
}  // namespace penstock::server::device::host
