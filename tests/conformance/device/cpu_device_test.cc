// The cpu device on each instruction-set level of this machine; two and three
// threads must give the bits of one.
#include "common/log/log.h"
#include "server/device/cpu/factory.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

CreateDevice Create(cpu::Isa isa, int threads) {
  return [=] {
    auto device = cpu::CreateCpuDevice({.threads = threads, .max_isa = isa});
    CHECK_OK(device.status());
    return *std::move(device);
  };
}

std::vector<DeviceCase> Cases() {
  std::vector<DeviceCase> cases;
  for (const cpu::Isa isa : cpu::SupportedIsas()) {
    cases.push_back({.name = std::string(cpu::Name(isa)),
                     .create = Create(isa, 1),
                     .same_bits = {Create(isa, 2), Create(isa, 3)}});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::device
