#include <cmath>

#include "server/device/philox.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Site {
  uint64_t seed = 9;
  int32_t site = 2;
  int64_t step = 5, sample = 7;
};

// Dropout of ones: the mask, scaled.
std::vector<double> Mask(Harness& h, const Shape& shape, float rate,
                         const Site& site) {
  const Tensor y = h.Out(shape);
  h.ops().ApplyDropout(
      h.stream(),
      {.x = h.In(shape, std::vector<float>(shape.elements(), 1)),
       .dropout = {.rate = rate,
                   .seed = site.seed,
                   .site = site.site,
                   .position = h.InI64(Shape({2}), {site.step, site.sample})},
       .y = y});
  return h.Read(y);
}

TEST_P(DeviceTest, DropoutIsTheDocumentedMask) {
  for (const Shape& shape : {Shape({0, 2, 3}), Shape({1, 1, 1}),
                             Shape({2, 3, 5}), Shape({3, 16, 64})}) {
    const auto x = Random(shape.elements(), 1);
    const auto residual = Random(shape.elements(), 2);
    constexpr float kRate = 0.3f;
    std::vector<double> plain(x.size()), with_residual(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t size = shape.dim(1) * shape.dim(2);
      const DropoutWords words({.seed = 9,
                                .step = 5,
                                .sample = 7 + static_cast<int64_t>(i) / size,
                                .site = 2});
      const bool kept = Kept(words.Word(i % size), KeepThreshold(kRate));
      plain[i] = kept ? x[i] / (1 - double{kRate}) : 0;
      with_residual[i] = plain[i] + residual[i];
    }
    for (const int variant : {0, 1, 2, 3}) {  // Bit 0: residual; 1: in place.
      CheckOp(
          [&](Harness& h) -> Outputs {
            const bool add = variant & 1, in_place = variant & 2;
            const Tensor input =
                in_place && !add ? h.InOut(shape, x) : h.In(shape, x);
            const Tensor extra = !add       ? Tensor()
                                 : in_place ? h.InOut(shape, residual)
                                            : h.In(shape, residual);
            const Tensor y = !in_place ? h.Out(shape) : add ? extra : input;
            h.ops().ApplyDropout(
                h.stream(),
                {.x = input,
                 .dropout = {.rate = kRate,
                             .seed = 9,
                             .site = 2,
                             .position = h.InI64(Shape({2}), {5, 7})},
                 .residual = extra,
                 .y = y});
            return {{"y", h.Read(y)}};
          },
          {{"y", variant & 1 ? with_residual : plain}}, 2e-7);
    }
  }
}

TEST_P(DeviceTest, DropoutOfRateZeroCopiesAndReadsNoPosition) {
  const Shape shape({1, 3, 7});
  const auto x = Random(21, 1), residual = Random(21, 2);
  std::vector<double> sum(21);
  for (int i = 0; i < 21; ++i) sum[i] = double{x[i]} + residual[i];
  CheckOp(
      [&](Harness& h) -> Outputs {
        const Tensor plain = h.Out(shape), added = h.Out(shape);
        h.ops().ApplyDropout(h.stream(), {.x = h.In(shape, x), .y = plain});
        h.ops().ApplyDropout(h.stream(), {.x = h.In(shape, x),
                                          .residual = h.In(shape, residual),
                                          .y = added});
        return {{"copy", h.Read(plain)}, {"sum", h.Read(added)}};
      },
      {{"copy", std::vector<double>(x.begin(), x.end())}, {"sum", sum}}, 1e-7);
}

TEST_P(DeviceTest, DropoutKeepsTheRightShare) {
  Harness h(device());
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    const auto mask = Mask(h, Shape({4, 50, 100}), rate, {});
    double kept = 0, sum = 0;
    for (const double value : mask) {
      kept += value != 0;
      sum += value;
    }
    const double n = mask.size();
    const double sigma = std::sqrt(rate * (1 - rate) / n);
    EXPECT_NEAR(kept / n, 1 - rate, 4 * sigma) << rate;
    EXPECT_NEAR(sum / n, 1, 4 * sigma / (1 - rate)) << rate;
  }
}

TEST_P(DeviceTest, DropoutDependsOnEveryCoordinateAndOnNothingElse) {
  Harness h(device());
  const Shape shape({1, 8, 16});
  const auto mask = Mask(h, shape, 0.5f, {});
  EXPECT_EQ(Mask(h, shape, 0.5f, {}), mask);
  EXPECT_NE(Mask(h, shape, 0.5f, {.seed = 10}), mask);
  EXPECT_NE(Mask(h, shape, 0.5f, {.site = 3}), mask);
  EXPECT_NE(Mask(h, shape, 0.5f, {.step = 6}), mask);
  EXPECT_NE(Mask(h, shape, 0.5f, {.sample = 8}), mask);
}

TEST_P(DeviceTest, DropoutOfASampleIsTheSameInAnyBatch) {
  Harness h(device());
  const auto all = Mask(h, Shape({5, 3, 7}), 0.5f, {.sample = 7});
  for (int64_t b = 0; b < 5; ++b) {
    const auto one = Mask(h, Shape({1, 3, 7}), 0.5f, {.sample = 7 + b});
    EXPECT_EQ(one, std::vector<double>(all.begin() + b * 21,
                                       all.begin() + (b + 1) * 21));
  }
}

TEST_P(DeviceTest, DropoutGradient) {
  const Shape shape({2, 3, 5});
  const auto apply = [&](Harness& h, const std::vector<float>& x) {
    const Tensor y = h.Out(shape);
    h.ops().ApplyDropout(h.stream(),
                         {.x = h.In(shape, x),
                          .dropout = {.rate = 0.4f,
                                      .seed = 1,
                                      .site = 1,
                                      .position = h.InI64(Shape({2}), {1, 1})},
                          .y = y});
    return h.Read(y);
  };
  CheckGradient(
      {.inputs = {Random(30, 1)},
       .forward = [&](Harness& h, const Inputs& in) { return apply(h, in[0]); },
       .backward =
           [&](Harness& h, const Inputs&, const std::vector<float>& dy) {
             return Gradients{apply(h, dy)};
           }});
}

}  // namespace
}  // namespace penstock::server::device
