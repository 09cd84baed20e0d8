#include <cmath>

#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

constexpr int64_t kSizes[] = {0, 1, 15, 17, 129, 5003};

std::vector<float> Positive(int64_t size, uint32_t seed) {
  std::vector<float> values = Random(size, seed);
  for (float& value : values) value = std::abs(value);
  return values;
}

TEST_P(DeviceTest, AdamwIsTorchs) {
  const std::vector<float> scalars = {0.125f, 1e-2f, 0.271f, 0.142625f};
  for (const int64_t n : kSizes) {
    const auto g = Random(n, 1, 4), w = Random(n, 2), m = Random(n, 3);
    const auto v = Positive(n, 4);
    std::vector<double> next_w(n), next_m(n), next_v(n);
    for (int64_t i = 0; i < n; ++i) {
      const double gradient = double{g[i]} * scalars[0], lr = scalars[1];
      next_m[i] = 0.9 * m[i] + (1 - 0.9) * gradient;
      next_v[i] = 0.95 * v[i] + (1 - 0.95) * gradient * gradient;
      next_w[i] = w[i] - lr * double{0.1f} * w[i];
      next_w[i] -= lr * (next_m[i] / scalars[2]) /
                   (std::sqrt(next_v[i] / scalars[3]) + double{1e-8f});
    }
    for (const bool in_place : {false, true}) {
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({n});
            const auto input = [&](const std::vector<float>& values) {
              return in_place ? h.InOut(shape, values) : h.In(shape, values);
            };
            const auto output = [&](const Tensor& tensor) {
              return in_place ? tensor : h.Out(shape);
            };
            const Tensor tw = input(w), tm = input(m), tv = input(v);
            const Tensor ow = output(tw), om = output(tm), ov = output(tv);
            h.ops().Adamw(h.stream(), {.scalars = h.In(Shape({4}), scalars),
                                       .gradient = h.In(shape, g),
                                       .weight = tw,
                                       .moment1 = tm,
                                       .moment2 = tv,
                                       .next_weight = ow,
                                       .next_moment1 = om,
                                       .next_moment2 = ov,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .epsilon = 1e-8f,
                                       .weight_decay = 0.1f});
            return {{"weight", h.Read(ow)},
                    {"moment1", h.Read(om)},
                    {"moment2", h.Read(ov)}};
          },
          {{"weight", next_w}, {"moment1", next_m}, {"moment2", next_v}}, 5e-7);
    }
  }
}

// From f32, 1 - 0.999 would be off by 1.3e-5 of its value, and a beta that
// rounds to 1 would leave nothing.
TEST_P(DeviceTest, AdamwTakesOneMinusBetaInF64) {
  const auto g = Random(129, 1);
  for (const double beta : {0.999, 0.99999999}) {
    std::vector<double> next_m(g.size()), next_v(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      next_m[i] = (1 - beta) * g[i];
      next_v[i] = (1 - beta) * g[i] * g[i];
    }
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Shape shape({static_cast<int64_t>(g.size())});
          const std::vector<float> zeros(g.size(), 0);
          const Tensor om = h.Out(shape), ov = h.Out(shape);
          h.ops().Adamw(h.stream(),
                        {.scalars = h.In(Shape({4}), {1, 1e-2f, 1, 1}),
                         .gradient = h.In(shape, g),
                         .weight = h.In(shape, zeros),
                         .moment1 = h.In(shape, zeros),
                         .moment2 = h.In(shape, zeros),
                         .next_weight = h.Out(shape),
                         .next_moment1 = om,
                         .next_moment2 = ov,
                         .beta1 = beta,
                         .beta2 = beta});
          return {{"moment1", h.Read(om)}, {"moment2", h.Read(ov)}};
        },
        {{"moment1", next_m}, {"moment2", next_v}}, 5e-7);
  }
}

TEST_P(DeviceTest, SgdIsTorchsWithDecoupledDecay) {
  const std::vector<float> scalars = {0.5f, 1e-1f, 1, 1};
  for (const int64_t n : kSizes) {
    for (const float momentum : {0.0f, 0.9f}) {
      const auto g = Random(n, 1), w = Random(n, 2), u = Random(n, 3);
      std::vector<double> next_w(n), next_u(n);
      for (int64_t i = 0; i < n; ++i) {
        next_u[i] = double{momentum} * u[i] + double{g[i]} * scalars[0];
        next_w[i] = w[i] - double{scalars[1]} * double{0.2f} * w[i] -
                    double{scalars[1]} * next_u[i];
      }
      Outputs expected = {{"weight", next_w}};
      if (momentum != 0) expected.push_back({"velocity", next_u});
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({n});
            const Tensor ow = h.Out(shape);
            const Tensor ou = momentum != 0 ? h.Out(shape) : Tensor();
            h.ops().Sgd(h.stream(),
                        {.scalars = h.In(Shape({4}), scalars),
                         .gradient = h.In(shape, g),
                         .weight = h.In(shape, w),
                         .velocity = momentum != 0 ? h.In(shape, u) : Tensor(),
                         .next_weight = ow,
                         .next_velocity = ou,
                         .momentum = momentum,
                         .weight_decay = 0.2f});
            Outputs outputs = {{"weight", h.Read(ow)}};
            if (momentum != 0) outputs.push_back({"velocity", h.Read(ou)});
            return outputs;
          },
          expected, 5e-7);
    }
  }
}

TEST_P(DeviceTest, SumSquaresIsMadeInF64) {
  for (const int64_t n : {0, 1, 17, 4095, 4096, 4097, 20011}) {
    const auto x = Random(n, 1, 3);
    double sum = 0;
    for (const float value : x) sum += double{value} * value;
    CheckOp(
        [&](Harness& h) -> Outputs {
          const Tensor result = h.Out(Shape({1}), 0, DType::kF64);
          h.ops().SumSquares(h.stream(),
                             {.x = h.In(Shape({n}), x), .sum = result});
          return {{"sum", h.Read(result)}};
        },
        {{"sum", {sum}}}, 1e-13);
  }
}

TEST_P(DeviceTest, SumSquaresOfHugeValuesDoesNotOverflow) {
  Harness h(device());
  const Tensor result = h.Out(Shape({1}), 0, DType::kF64);
  h.ops().SumSquares(h.stream(),
                     {.x = h.In(Shape({2}), {1e30f, 1e30f}), .sum = result});
  EXPECT_NEAR(h.Read(result)[0], 2e60, 1e54);
}

TEST_P(DeviceTest, SumSquaresShowsNonFiniteValues) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(37, 1);
    x[35] = bad;
    Harness h(device());
    const Tensor result = h.Out(Shape({1}), 0, DType::kF64);
    h.ops().SumSquares(h.stream(), {.x = h.In(Shape({37}), x), .sum = result});
    EXPECT_FALSE(std::isfinite(h.Read(result)[0]));
  }
}

}  // namespace
}  // namespace penstock::server::device
