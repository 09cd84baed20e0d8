#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 16, 33, 257};

TEST_P(DeviceTest, FillAndCopy) {
  for (const int64_t n : kSizes) {
    const auto x = Random(n, 1);
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Shape shape({n});
          const Tensor filled = h.Out(shape), copied = h.Out(shape);
          h.ops().Fill(h.stream(), {.y = filled, .value = 2.5f});
          h.ops().Copy(h.stream(), {.x = h.In(shape, x), .y = copied});
          return {{"fill", h.Read(filled)}, {"copy", h.Read(copied)}};
        },
        {{"fill", std::vector<double>(n, 2.5)},
         {"copy", std::vector<double>(x.begin(), x.end())}},
        0);
  }
}

TEST_P(DeviceTest, CopyOfOtherTypes) {
  Harness h(device());
  const Tensor y = h.Out(Shape({2, 3}), 0, DType::kI64);
  h.ops().Copy(h.stream(),
               {.x = h.InI64(Shape({2, 3}), {1, 2, 3, -4, 5, int64_t{1} << 40}),
                .y = y});
  EXPECT_EQ(h.Read(y), (std::vector<double>{1, 2, 3, -4, 5, 1099511627776.0}));
}

}  // namespace
}  // namespace penstock::server::device
