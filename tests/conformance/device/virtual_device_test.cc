// The virtual device: the bits of the reference.
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "server/device/reference/factory.h"
#include "server/device/virtual/factory.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

std::unique_ptr<Device> Created(absl::StatusOr<std::unique_ptr<Device>> made) {
  CHECK_OK(made.status());
  return *std::move(made);
}

DeviceCase Case(const common::time::Clock& clock) {
  return {.name = "virtual",
          .create =
              [&clock] {
                return Created(virtual_device::CreateVirtualDevice(clock));
              },
          .same_bits = {
              [] { return Created(reference::CreateReferenceDevice()); }}};
}

const common::time::RealClock kClock;

INSTANTIATE_TEST_SUITE_P(Virtual, DeviceTest, ::testing::Values(Case(kClock)));

}  // namespace
}  // namespace penstock::server::device
