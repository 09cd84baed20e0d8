#include "absl/strings/str_cat.h"
#include "tests/conformance/device/device_suite.h"

namespace penstock::server::device {
namespace {

struct Size {
  int64_t rows, in, out;
};
// Empty, smallest, prime, at and around the blocks that backends use, and
// leading dimensions that are multiples of 1024.
constexpr Size kSizes[] = {{0, 3, 5},      {1, 1, 1},       {7, 13, 11},
                           {5, 64, 48},    {33, 17, 129},   {64, 96, 80},
                           {130, 257, 67}, {256, 128, 64},  {61, 300, 96},
                           {3, 1024, 100}, {200, 31, 1024}, {601, 20, 33}};
constexpr WeightLayout kLayouts[] = {WeightLayout::kInOut,
                                     WeightLayout::kOutIn};
constexpr double kTolerance = 3e-6;

// c (m, n) = a (m, k) * b (k, n), with transposes as strides.
std::vector<double> Product(int64_t m, int64_t n, int64_t k,
                            const std::function<double(int64_t, int64_t)>& a,
                            const std::function<double(int64_t, int64_t)>& b) {
  std::vector<double> c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      const double scale = a(i, l);
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += scale * b(l, j);
    }
  }
  return c;
}

TEST_P(DeviceTest, LinearForward) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, in = size.in, out = size.out;
    const auto x = Random(rows * in, 1), w = Random(in * out, 2);
    const auto bias = Random(out, 3);
    for (const bool with_bias : {false, true}) {
      std::vector<double> y = Product(
          rows, out, in, [&](auto i, auto l) { return x[i * in + l]; },
          [&](auto l, auto j) { return w[l * out + j]; });
      for (int64_t i = 0; with_bias && i < rows * out; ++i) {
        y[i] += bias[i % out];
      }
      for (const WeightLayout layout : kLayouts) {
        SCOPED_TRACE(absl::StrCat(rows, " x ", in, " x ", out));
        CheckOp(
            [&](Harness& h) -> Outputs {
              const Tensor result = h.Out(Shape({rows, out}));
              h.ops().LinearForward(
                  h.stream(),
                  {.x = h.In(Shape({rows, in}), x),
                   .weight = h.PackedWeight(in, out, layout, w),
                   .bias = with_bias ? h.In(Shape({out}), bias) : Tensor(),
                   .y = result});
              return {{"y", h.Read(result)}};
            },
            {{"y", y}}, kTolerance);
      }
    }
  }
}

TEST_P(DeviceTest, LinearBackwardInput) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, in = size.in, out = size.out;
    const auto dy = Random(rows * out, 1), w = Random(in * out, 2);
    const std::vector<double> dx = Product(
        rows, in, out, [&](auto i, auto l) { return dy[i * out + l]; },
        [&](auto l, auto j) { return w[j * out + l]; });
    for (const WeightLayout layout : kLayouts) {
      SCOPED_TRACE(absl::StrCat(rows, " x ", in, " x ", out));
      CheckOp(
          [&](Harness& h) -> Outputs {
            const Tensor result = h.Out(Shape({rows, in}));
            h.ops().LinearBackwardInput(
                h.stream(), {.dy = h.In(Shape({rows, out}), dy),
                             .weight = h.PackedWeight(in, out, layout, w),
                             .dx = result});
            return {{"dx", h.Read(result)}};
          },
          {{"dx", dx}}, kTolerance);
    }
  }
}

TEST_P(DeviceTest, LinearBackwardWeightStoresAndAdds) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, in = size.in, out = size.out;
    const auto x = Random(rows * in, 1), dy = Random(rows * out, 2);
    const auto old_dw = Random(in * out, 3), old_db = Random(out, 4);
    for (const WeightLayout layout : kLayouts) {
      const bool in_out = layout == WeightLayout::kInOut;
      const auto x_at = [&](auto r, auto i) { return x[r * in + i]; };
      const auto dy_at = [&](auto r, auto o) { return dy[r * out + o]; };
      const std::vector<double> dw =
          in_out ? Product(
                       in, out, rows,
                       [&](auto i, auto r) { return x_at(r, i); }, dy_at)
                 : Product(
                       out, in, rows,
                       [&](auto o, auto r) { return dy_at(r, o); }, x_at);
      std::vector<double> db(out);
      for (int64_t i = 0; i < rows * out; ++i) db[i % out] += dy[i];
      const Shape shape = in_out ? Shape({in, out}) : Shape({out, in});
      for (const bool add : {false, true}) {
        SCOPED_TRACE(
            absl::StrCat(rows, " x ", in, " x ", out, add ? " add" : ""));
        Outputs expected = {{"dw", dw}, {"dbias", db}};
        for (int64_t i = 0; add && i < in * out; ++i) {
          expected[0].second[i] += old_dw[i];
        }
        for (int64_t i = 0; add && i < out; ++i) {
          expected[1].second[i] += old_db[i];
        }
        CheckOp(
            [&](Harness& h) -> Outputs {
              const Tensor weight = add ? h.InOut(shape, old_dw) : h.Out(shape);
              const Tensor bias =
                  add ? h.InOut(Shape({out}), old_db) : h.Out(Shape({out}));
              h.ops().LinearBackwardWeight(
                  h.stream(),
                  {.x = h.In(Shape({rows, in}), x),
                   .dy = h.In(Shape({rows, out}), dy),
                   .layout = layout,
                   .dw = weight,
                   .dbias = bias,
                   .accumulate = add ? Accumulate::kAdd : Accumulate::kStore});
              return {{"dw", h.Read(weight)}, {"dbias", h.Read(bias)}};
            },
            expected, kTolerance);
      }
    }
  }
}

TEST_P(DeviceTest, LinearBackwardWeightWithoutBias) {
  CheckBits([](Harness& h) -> Outputs {
    const Tensor dw = h.Out(Shape({5, 3}));
    h.ops().LinearBackwardWeight(h.stream(),
                                 {.x = h.In(Shape({2, 5}), Random(10, 1)),
                                  .dy = h.In(Shape({2, 3}), Random(6, 2)),
                                  .dw = dw});
    return {{"dw", h.Read(dw)}};
  });
}

TEST_P(DeviceTest, LinearGradients) {
  constexpr int64_t kRows = 9, kIn = 21, kOut = 13;
  for (const WeightLayout layout : kLayouts) {
    CheckGradient(
        {.inputs = {Random(kRows * kIn, 1), Random(kIn * kOut, 2),
                    Random(kOut, 3)},
         .forward =
             [&](Harness& h, const Inputs& in) {
               const Tensor y = h.Out(Shape({kRows, kOut}));
               h.ops().LinearForward(
                   h.stream(),
                   {.x = h.In(Shape({kRows, kIn}), in[0]),
                    .weight = h.PackedWeight(kIn, kOut, layout, in[1]),
                    .bias = h.In(Shape({kOut}), in[2]),
                    .y = y});
               return h.Read(y);
             },
         .backward =
             [&](Harness& h, const Inputs& in, const std::vector<float>& dy) {
               const Tensor x = h.In(Shape({kRows, kIn}), in[0]);
               const Tensor grad = h.In(Shape({kRows, kOut}), dy);
               const Tensor dx = h.Out(Shape({kRows, kIn}));
               h.ops().LinearBackwardInput(
                   h.stream(),
                   {.dy = grad,
                    .weight = h.PackedWeight(kIn, kOut, layout, in[1]),
                    .dx = dx});
               // dw in the (in, out) order of the input, whatever the layout.
               const Tensor dw = h.Out(Shape({kIn, kOut}));
               const Tensor db = h.Out(Shape({kOut}));
               h.ops().LinearBackwardWeight(
                   h.stream(), {.x = x, .dy = grad, .dw = dw, .dbias = db});
               return Gradients{h.Read(dx), h.Read(dw), h.Read(db)};
             }});
  }
}

}  // namespace
}  // namespace penstock::server::device
