#include "common/log/log.h"
#include "server/device/reference/factory.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

INSTANTIATE_TEST_SUITE_P(Reference, DeviceTest,
                         ::testing::Values(DeviceCase{
                             .name = "reference", .create = [] {
                               auto device = reference::CreateReferenceDevice();
                               CHECK_OK(device.status());
                               return *std::move(device);
                             }}));

}  // namespace
}  // namespace penstock::server::device
