#include "tests/conformance/device/device_suite.h"

#include <cmath>
#include <cstring>

#include "common/log/log.h"
#include "server/device/reference/factory.h"

namespace penstock::server::device {
namespace {

// Inputs are of the order of 1; results below this are cancelled to noise.
constexpr double kSmallest = 1e-3;

void ExpectClose(const Outputs& actual, const Outputs& expected,
                 double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t o = 0; o < actual.size(); ++o) {
    const auto& [name, a] = actual[o];
    const std::vector<double>& e = expected[o].second;
    EXPECT_EQ(name, expected[o].first);
    ASSERT_EQ(a.size(), e.size()) << name << " against " << what;
    double largest = kSmallest, worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double difference = std::abs(a[i] - e[i]);
      largest = std::max(largest, std::abs(e[i]));
      if (!(difference <= worst)) {  // A NaN is the worst of all.
        worst = difference;
        where = i;
        if (std::isnan(difference)) break;
      }
    }
    EXPECT_TRUE(worst <= tolerance * largest)
        << name << " against " << what << ": element " << where << " is "
        << a[where] << ", not " << e[where] << "; largest " << largest
        << ", error " << worst / largest << " > " << tolerance;
  }
}

void ExpectSameBits(const Outputs& actual, const Outputs& expected,
                    const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t o = 0; o < actual.size(); ++o) {
    const std::vector<double>&a = actual[o].second, &e = expected[o].second;
    ASSERT_EQ(a.size(), e.size());
    size_t differing = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      differing += std::memcmp(&a[i], &e[i], sizeof(double)) != 0;
    }
    EXPECT_EQ(differing, 0) << "elements of " << actual[o].first << ", of "
                            << a.size() << ", differ in bits: " << what;
  }
}

}  // namespace

DeviceTest::DeviceTest() : device_(GetParam().create()) {
  auto reference = reference::CreateReferenceDevice();
  CHECK_OK(reference.status());
  reference_ = *std::move(reference);
  for (const CreateDevice& create : GetParam().same_bits) {
    same_bits_.push_back(create());
  }
}

void DeviceTest::CheckOp(const OpRun& run, const Outputs& expected,
                         double tolerance) {
  Harness own(*device_);
  const Outputs actual = run(own);
  ExpectClose(actual, expected, tolerance, "the formula in f64");
  if (device_->kind() != "reference") {
    Harness reference(*reference_);
    ExpectClose(actual, run(reference), tolerance, "the reference device");
  }
  CheckBits(run);
}

void DeviceTest::CheckBits(const OpRun& run) {
  Harness first(*device_), second(*device_);
  const Outputs actual = run(first);
  ExpectSameBits(run(second), actual, "a second run");
  for (const auto& other : same_bits_) {
    Harness harness(*other);
    ExpectSameBits(run(harness), actual, "a device that must agree");
  }
}

void DeviceTest::CheckGradient(const Gradient& g) {
  Harness harness(*device_);
  std::vector<float> dy;
  const auto loss = [&](const Inputs& inputs) {
    const std::vector<double> y = g.forward(harness, inputs);
    if (dy.empty()) dy = Random(y.size(), 77);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  loss(g.inputs);
  const auto gradients = g.backward(harness, g.inputs, dy);
  ASSERT_EQ(gradients.size(), g.inputs.size());
  for (size_t which = 0; which < g.inputs.size(); ++which) {
    ASSERT_EQ(gradients[which].size(), g.inputs[which].size());
    for (uint32_t trial = 0; trial < 3; ++trial) {
      const std::vector<float> direction =
          Random(g.inputs[which].size(), 1000 + trial);
      Inputs plus = g.inputs, minus = g.inputs;
      double analytic = 0, size = 0, actual_step = 0, length = 0;
      for (size_t i = 0; i < direction.size(); ++i) {
        plus[which][i] += static_cast<float>(g.step) * direction[i];
        minus[which][i] -= static_cast<float>(g.step) * direction[i];
        analytic += gradients[which][i] * direction[i];
        size += std::pow(gradients[which][i] * direction[i], 2);
        actual_step += direction[i] * double{plus[which][i] - minus[which][i]};
        length += double{direction[i]} * direction[i];
      }
      const double numeric =
          (loss(plus) - loss(minus)) / (actual_step / length);
      EXPECT_NEAR(analytic, numeric,
                  g.tolerance * (std::sqrt(size) + std::abs(numeric)))
          << "gradient of input " << which << ", direction " << trial;
    }
  }
}

}  // namespace penstock::server::device
