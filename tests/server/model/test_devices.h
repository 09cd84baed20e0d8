// The devices that model tests run on.
#ifndef PENSTOCK_TESTS_SERVER_MODEL_TEST_DEVICES_H_
#define PENSTOCK_TESTS_SERVER_MODEL_TEST_DEVICES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/device/cpu/factory.h"
#include "server/device/device.h"
#include "server/device/reference/factory.h"

namespace penstock::testing {

// "reference", "cpu" (one thread), or "cpu2" (two).
inline absl::StatusOr<std::unique_ptr<server::device::Device>> CreateTestDevice(
    const std::string& name) {
  if (name == "reference") {
    return server::device::reference::CreateReferenceDevice();
  }
  return server::device::cpu::CreateCpuDevice(
      {.threads = name == "cpu2" ? 2 : 1});
}

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_MODEL_TEST_DEVICES_H_
