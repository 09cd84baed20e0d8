// That the harness notices what it is there for.
#include "tests/conformance/device/harness.h"

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::device {
namespace {

class HarnessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = reference::CreateReferenceDevice();
    ASSERT_OK(device.status());
    device_ = *std::move(device);
  }
  // Fills `size` floats from `begin` on, wherever they are.
  static void Overwrite(Harness& h, float* begin, int64_t size) {
    h.ops().Fill(h.stream(),
                 {.y = Tensor(begin, DType::kF32, Shape({size})), .value = 1});
  }

  std::unique_ptr<Device> device_;
};

TEST_F(HarnessTest, NoticesAWriteBehindATensor) {
  Harness h(*device_);
  const Tensor y = h.Out(Shape({2, 3}));
  Overwrite(h, y.f32(), 6);
  h.Read(y);
  float* const end = y.f32() + 6;
  const float kept = *end;
  Overwrite(h, end, 1);
  EXPECT_NONFATAL_FAILURE(h.Read(y), "byte 24 of a tensor of (2, 3)");
  *end = kept;
}

TEST_F(HarnessTest, NoticesAWriteBeforeATensorAndBetweenItsRows) {
  Harness h(*device_);
  const Tensor y = h.Out(Shape({2, 3}), 5);
  for (const int64_t offset : {int64_t{-1}, int64_t{3}}) {
    float* const at = y.f32() + offset;
    const float kept = *at;
    Overwrite(h, at, 1);
    EXPECT_NONFATAL_FAILURE(h.Read(y), "outside its rows");
    *at = kept;
  }
}

TEST_F(HarnessTest, NoticesAChangedInput) {
  auto h = std::make_unique<Harness>(*device_);
  const Tensor x = h->In(Shape({3}), {2, 3, 4});
  Overwrite(*h, x.f32(), 1);
  Harness* const raw = h.release();  // Deleted once, by the line below.
  EXPECT_NONFATAL_FAILURE(delete raw, "an input was changed");
}

TEST_F(HarnessTest, OutputsAreNanUntilAssigned) {
  Harness h(*device_);
  const double value = h.Read(h.Out(Shape({1})))[0];
  EXPECT_NE(value, value);
}

}  // namespace
}  // namespace penstock::server::device
