// The one conformance suite of devices. A backend joins with
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DeviceTest, Values(DeviceCase{
//       .name = "cpu", .create = ..., .same_bits = {...}}));
//
// linked with penstock_tests_conformance_device, whose objects hold the tests.
// Every op is compared with formulas computed in f64 by the test, with the
// reference device, with itself (a second run), and with the devices that must
// give the same bits.
#ifndef PENSTOCK_TESTS_CONFORMANCE_DEVICE_DEVICE_SUITE_H_
#define PENSTOCK_TESTS_CONFORMANCE_DEVICE_DEVICE_SUITE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/device/device.h"
#include "tests/conformance/device/harness.h"

namespace penstock::server::device {

using CreateDevice = std::function<std::unique_ptr<Device>()>;

struct DeviceCase {
  std::string name;
  CreateDevice create;
  // Devices whose results must equal this one's bit for bit: other thread
  // counts.
  std::vector<CreateDevice> same_bits;
};
inline std::ostream& operator<<(std::ostream& out, const DeviceCase& c) {
  return out << c.name;
}

// Named results of one run of an op.
using Outputs = std::vector<std::pair<std::string, std::vector<double>>>;
using OpRun = std::function<Outputs(Harness&)>;

class DeviceTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  DeviceTest();

  Device& device() { return *device_; }

  // Runs the op as the suite's comment says. `tolerance` bounds
  // max |actual - expected| by tolerance * max(|expected|, 1e-3), for each
  // output.
  void CheckOp(const OpRun& run, const Outputs& expected, double tolerance);

  // The same, without the formulas in f64: where another test has them.
  void CheckBits(const OpRun& run);

  // Checks gradients against central differences along random directions.
  // The loss is sum(dy * forward(inputs)).
  using Inputs = std::vector<std::vector<float>>;
  using Gradients = std::vector<std::vector<double>>;
  struct Gradient {
    Inputs inputs;
    std::function<std::vector<double>(Harness&, const Inputs&)> forward;
    // One gradient per input, for the loss's dy.
    std::function<Gradients(Harness&, const Inputs&,
                            const std::vector<float>& dy)>
        backward;
    double step = 1e-2;
    double tolerance = 2e-3;  // Of the derivative's size.
  };
  void CheckGradient(const Gradient& gradient);

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> reference_;
  std::vector<std::unique_ptr<Device>> same_bits_;
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_TESTS_CONFORMANCE_DEVICE_DEVICE_SUITE_H_
