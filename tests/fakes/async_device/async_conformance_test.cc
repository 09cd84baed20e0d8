#include "common/log/log.h"
#include "server/device/reference/factory.h"
#include "tests/conformance/device/device_suite.h"
#include "tests/fakes/async_device/async_device.h"

namespace penstock::server::device {
namespace {

using Schedule = tests::fakes::AsyncDeviceOptions::Schedule;

CreateDevice Create(Schedule schedule, uint32_t seed) {
  return [=] {
    auto reference = reference::CreateReferenceDevice();
    CHECK_OK(reference.status());
    return tests::fakes::CreateAsyncDevice(
        {.schedule = schedule,
         .seed = seed,
         .longest_delay = absl::Microseconds(50)},
        *std::move(reference));
  };
}

INSTANTIATE_TEST_SUITE_P(
    Async, DeviceTest,
    ::testing::Values(DeviceCase{.name = "random",
                                 .create = Create(Schedule::kRandom, 1)},
                      DeviceCase{.name = "lazy",
                                 .create = Create(Schedule::kLazy, 1),
                                 .same_bits = {Create(Schedule::kRandom, 2)}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::device
