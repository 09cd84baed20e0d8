#include <cmath>

#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

// Around and between vector lengths, and more than one block of work.
constexpr int64_t kSizes[] = {0, 1, 3, 16, 17, 31, 64, 129, 40007};

double Gelu(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluSlope(double x) {
  const double c = std::sqrt(2 / M_PI);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <typename F>
std::vector<double> Map(const std::vector<float>& x, F f) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(i);
  return y;
}

TEST_P(DeviceTest, GeluForward) {
  for (const int64_t n : kSizes) {
    const auto x = Random(n, 1, 6);
    const Outputs expected = {
        {"y", Map(x, [&](size_t i) { return Gelu(x[i]); })},
        {"slope", Map(x, [&](size_t i) { return GeluSlope(x[i]); })}};
    for (const bool in_place : {false, true}) {
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({1, n});
            const Tensor input = in_place ? h.InOut(shape, x) : h.In(shape, x);
            const Tensor y = h.Out(shape);
            const Tensor slope = in_place ? input : h.Out(shape);
            h.ops().GeluForward(h.stream(),
                                {.x = input, .y = y, .slope = slope});
            return {{"y", h.Read(y)}, {"slope", h.Read(slope)}};
          },
          expected, 4e-7);
    }
  }
}

// Tails: saturation, not NaN, and relative accuracy near 0.
TEST_P(DeviceTest, GeluOfExtremes) {
  const std::vector<float> x = {-1e30f, -100,  -20,   -10, -5,    -1e-3f,
                                0,      1e-6f, 1e-3f, 5,   100.f, 1e18f};
  Harness h(device());
  const Shape shape({1, static_cast<int64_t>(x.size())});
  const Tensor y = h.Out(shape), slope = h.Out(shape);
  h.ops().GeluForward(h.stream(),
                      {.x = h.In(shape, x), .y = y, .slope = slope});
  const std::vector<double> values = h.Read(y), slopes = h.Read(slope);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(values[i], Gelu(x[i]), 1e-6 * std::abs(x[i])) << x[i];
    EXPECT_TRUE(std::abs(slopes[i] - GeluSlope(x[i])) < 2e-6 ||
                std::abs(x[i]) > 1e17)
        << x[i] << ": " << slopes[i];
  }
}

TEST_P(DeviceTest, MultiplyAndAdd) {
  for (const int64_t n : kSizes) {
    const auto a = Random(n, 1), b = Random(n, 2);
    const auto product = Map(a, [&](size_t i) { return double{a[i]} * b[i]; });
    const auto sum = Map(a, [&](size_t i) { return double{a[i]} + b[i]; });
    for (const int in_place : {0, 1, 2}) {  // Not, into a, into b.
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({n});
            Outputs outputs;
            for (const bool add : {false, true}) {
              const Tensor ta =
                  in_place == 1 ? h.InOut(shape, a) : h.In(shape, a);
              const Tensor tb =
                  in_place == 2 ? h.InOut(shape, b) : h.In(shape, b);
              const Tensor y = in_place == 0   ? h.Out(shape)
                               : in_place == 1 ? ta
                                               : tb;
              if (add) {
                h.ops().Add(h.stream(), {.a = ta, .b = tb, .y = y});
              } else {
                h.ops().Multiply(h.stream(), {.a = ta, .b = tb, .y = y});
              }
              outputs.push_back({add ? "a + b" : "a * b", h.Read(y)});
            }
            return outputs;
          },
          {{"a * b", product}, {"a + b", sum}}, 1e-7);
    }
  }
}

TEST_P(DeviceTest, SwigluForwardAndBackward) {
  for (const int64_t n : kSizes) {
    const auto gate = Random(n, 1, 8), up = Random(n, 2), dy = Random(n, 3);
    const Outputs expected = {
        {"y",
         Map(gate,
             [&](size_t i) { return gate[i] * Sigmoid(gate[i]) * up[i]; })},
        {"dgate", Map(gate,
                      [&](size_t i) {
                        const double s = Sigmoid(gate[i]);
                        return dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
                      })},
        {"dup", Map(gate, [&](size_t i) {
           return dy[i] * gate[i] * Sigmoid(gate[i]);
         })}};
    for (const bool in_place : {false, true}) {
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Shape shape({1, n});
            const auto input = [&](const std::vector<float>& values) {
              return in_place ? h.InOut(shape, values) : h.In(shape, values);
            };
            const Tensor g = input(gate), u = input(up), y = h.Out(shape);
            h.ops().SwigluForward(h.stream(), {.gate = g, .up = u, .y = y});
            const Tensor dgate = in_place ? g : h.Out(shape);
            const Tensor dup = in_place ? u : h.Out(shape);
            h.ops().SwigluBackward(h.stream(), {.gate = g,
                                                .up = u,
                                                .dy = h.In(shape, dy),
                                                .dgate = dgate,
                                                .dup = dup});
            return {{"y", h.Read(y)},
                    {"dgate", h.Read(dgate)},
                    {"dup", h.Read(dup)}};
          },
          expected, 6e-7);
    }
  }
}

// gate and up as columns of one product, their gradients likewise.
TEST_P(DeviceTest, SwigluOnStridedRows) {
  constexpr int64_t kRows = 5, kWidth = 19, kStride = 2 * kWidth + 3;
  constexpr int64_t kElements = kRows * kWidth;
  const auto gate = Random(kElements, 1, 8), up = Random(kElements, 2);
  const auto dy = Random(kElements, 3);
  Outputs expected = {{"y", {}}, {"dgate", {}}, {"dup", {}}};
  for (int64_t i = 0; i < kElements; ++i) {
    const double s = Sigmoid(gate[i]);
    expected[0].second.push_back(gate[i] * s * up[i]);
    expected[1].second.push_back(dy[i] * up[i] * s * (1 + gate[i] * (1 - s)));
    expected[2].second.push_back(dy[i] * gate[i] * s);
  }
  CheckOp(
      [&](Harness& h) -> Outputs {
        const Shape shape({kRows, kWidth});
        const Tensor g = h.In(shape, gate, kStride);
        const Tensor u = h.In(shape, up, kStride), y = h.Out(shape);
        const Tensor dgate = h.Out(shape, kStride);
        const Tensor dup = h.Out(shape, kStride);
        h.ops().SwigluForward(h.stream(), {.gate = g, .up = u, .y = y});
        h.ops().SwigluBackward(h.stream(), {.gate = g,
                                            .up = u,
                                            .dy = h.In(shape, dy),
                                            .dgate = dgate,
                                            .dup = dup});
        return {
            {"y", h.Read(y)}, {"dgate", h.Read(dgate)}, {"dup", h.Read(dup)}};
      },
      expected, 6e-7);
}

TEST_P(DeviceTest, SwigluOfExtremesIsFinite) {
  Harness h(device());
  const Shape shape({1, 4});
  const Tensor gate = h.In(shape, {-1e4f, -100, 100, 1e4f});
  const Tensor up = h.In(shape, {1, 1, 1, 1}), y = h.Out(shape);
  h.ops().SwigluForward(h.stream(), {.gate = gate, .up = up, .y = y});
  const std::vector<double> values = h.Read(y);
  EXPECT_NEAR(values[0], 0, 1e-6);
  EXPECT_NEAR(values[1], 0, 1e-6);
  EXPECT_NEAR(values[2], 100, 1e-4);
  EXPECT_NEAR(values[3], 1e4, 1e-2);
}

TEST_P(DeviceTest, GeluAndSwigluGradients) {
  constexpr int64_t kSize = 37;
  const Shape shape({1, kSize});
  CheckGradient(
      {.inputs = {Random(kSize, 1, 3)},
       .forward =
           [&](Harness& h, const Inputs& in) {
             const Tensor y = h.Out(shape), slope = h.Out(shape);
             h.ops().GeluForward(
                 h.stream(), {.x = h.In(shape, in[0]), .y = y, .slope = slope});
             return h.Read(y);
           },
       .backward =
           [&](Harness& h, const Inputs& in, const std::vector<float>& dy) {
             const Tensor y = h.Out(shape), slope = h.Out(shape);
             h.ops().GeluForward(
                 h.stream(), {.x = h.In(shape, in[0]), .y = y, .slope = slope});
             const Tensor dx = h.Out(shape);
             h.ops().Multiply(h.stream(),
                              {.a = h.In(shape, dy), .b = slope, .y = dx});
             return Gradients{h.Read(dx)};
           }});
  CheckGradient(
      {.inputs = {Random(kSize, 1, 3), Random(kSize, 2)},
       .forward =
           [&](Harness& h, const Inputs& in) {
             const Tensor y = h.Out(shape);
             h.ops().SwigluForward(h.stream(), {.gate = h.In(shape, in[0]),
                                                .up = h.In(shape, in[1]),
                                                .y = y});
             return h.Read(y);
           },
       .backward =
           [&](Harness& h, const Inputs& in, const std::vector<float>& dy) {
             const Tensor dgate = h.Out(shape), dup = h.Out(shape);
             h.ops().SwigluBackward(h.stream(), {.gate = h.In(shape, in[0]),
                                                 .up = h.In(shape, in[1]),
                                                 .dy = h.In(shape, dy),
                                                 .dgate = dgate,
                                                 .dup = dup});
             return Gradients{h.Read(dgate), h.Read(dup)};
           }});
}

}  // namespace
}  // namespace penstock::server::device
