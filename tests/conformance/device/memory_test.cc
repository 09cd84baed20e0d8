#include <bit>
#include <cmath>

#include "server/device/half.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 16, 33, 257};

float Rounded(float value) {
  return std::bit_cast<float>(
      BitsFromBf16(Bf16FromBits(std::bit_cast<uint32_t>(value))));
}

TEST_P(DeviceTest, ConvertRoundsF32ToBf16) {
  for (const int64_t n : kSizes) {
    auto x = Random(n, 1, 1000);
    if (n > 6) {
      x[0] = std::bit_cast<float>(0x3F808000u);  // A tie, to even below.
      x[1] = std::bit_cast<float>(0x3F818000u);  // A tie, to even above.
      x[2] = INFINITY;
      x[3] = -0.0f;
      x[4] = std::bit_cast<float>(0x7F7FFFFFu);  // Rounds to infinity.
    }
    Harness h(device());
    const Tensor y = h.Out(Shape({n}), 0, DType::kBf16);
    h.ops().Convert(h.stream(), {.x = h.In(Shape({n}), x), .y = y});
    const auto values = h.Read(y);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(values[i], Rounded(x[i])) << x[i];
    }
  }
}

TEST_P(DeviceTest, ConvertKeepsNan) {
  Harness h(device());
  const Tensor y = h.Out(Shape({1}), 0, DType::kBf16);
  h.ops().Convert(
      h.stream(),
      {.x = h.In(Shape({1}), {std::bit_cast<float>(0x7F800001u)}), .y = y});
  EXPECT_TRUE(std::isnan(h.Read(y)[0]));
}

TEST_P(DeviceTest, ConvertWidensBf16AndF16Exactly) {
  std::vector<uint16_t> bits;
  for (uint32_t v = 0; v < 0x10000; v += 37) bits.push_back(v);
  const Shape shape({static_cast<int64_t>(bits.size())});
  for (const DType type : {DType::kBf16, DType::kF16}) {
    Harness h(device());
    const Tensor y = h.Out(shape);
    h.ops().Convert(h.stream(), {.x = h.InBits(type, shape, bits), .y = y});
    const auto values = h.Read(y);
    for (size_t i = 0; i < bits.size(); ++i) {
      const float expected = std::bit_cast<float>(
          type == DType::kBf16 ? BitsFromBf16(bits[i]) : BitsFromF16(bits[i]));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(values[i])) << bits[i];
      } else {
        EXPECT_EQ(values[i], expected) << bits[i];
      }
    }
  }
}

TEST_P(DeviceTest, ConvertF16ToBf16AndLikeToLike) {
  Harness h(device());
  const Shape shape({3});
  const Tensor from_half = h.Out(shape, 0, DType::kBf16);
  h.ops().Convert(h.stream(),
                  {.x = h.InBits(DType::kF16, shape, {0x3C00, 0xC500, 0x3C01}),
                   .y = from_half});
  EXPECT_EQ(h.Read(from_half), (std::vector<double>{1, -5, 1}));
  const Tensor same = h.Out(shape);
  h.ops().Convert(h.stream(), {.x = h.In(shape, {1.1f, -2, 3}), .y = same});
  EXPECT_EQ(h.Read(same), (std::vector<double>{1.1f, -2, 3}));
  const Tensor brain = h.Out(shape, 0, DType::kBf16);
  h.ops().Convert(
      h.stream(),
      {.x = h.InBits(DType::kBf16, shape, {0x3F80, 0xC000, 0}), .y = brain});
  EXPECT_EQ(h.Read(brain), (std::vector<double>{1, -2, 0}));
}

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
