#include "server/device/reference/linear.h"

#include <algorithm>
#include <vector>

namespace penstock::server::device::reference {
namespace {

// Element (i, j) is data[i * row_stride + j * column_stride].
struct View {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;

  View Transposed() const { return {data, column_stride, row_stride}; }
};

View RowMajor(const Tensor& tensor) {
  return {tensor.f32(), tensor.columns(), 1};
}

// W as (in, out), whatever its layout.
View InOut(const Weight& weight) {
  const View view = RowMajor(weight.master);
  return weight.layout == WeightLayout::kInOut ? view : view.Transposed();
}

struct Extents {
  int64_t m, n, k;
};

// c (m, n) += a (m, k) * b (k, n), k ascending. c is contiguous.
void AddProduct(const Extents& e, const View& a, const View& b, float* c) {
  // Rows of b are made contiguous, so that the inner loop runs along them.
  std::vector<float> rows(e.k * e.n);
  for (int64_t k = 0; k < e.k; ++k) {
    for (int64_t n = 0; n < e.n; ++n) {
      rows[k * e.n + n] = b.data[k * b.row_stride + n * b.column_stride];
    }
  }
  for (int64_t m = 0; m < e.m; ++m) {
    float* out = c + m * e.n;
    for (int64_t k = 0; k < e.k; ++k) {
      const float scale = a.data[m * a.row_stride + k * a.column_stride];
      const float* row = rows.data() + k * e.n;
      for (int64_t n = 0; n < e.n; ++n) out[n] += scale * row[n];
    }
  }
}

}  // namespace

void LinearForward(const LinearForwardArgs& args) {
  const int64_t rows = args.x.rows();
  const int64_t in = args.weight.in(), out = args.weight.out();
  float* y = args.y.f32();
  std::fill_n(y, rows * out, 0.0f);
  AddProduct({.m = rows, .n = out, .k = in}, RowMajor(args.x),
             InOut(args.weight), y);
  if (!args.bias.present()) return;
  const float* bias = args.bias.f32();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) y[r * out + o] += bias[o];
  }
}

void LinearBackwardInput(const LinearBackwardInputArgs& args) {
  const int64_t rows = args.dy.rows();
  const int64_t in = args.weight.in(), out = args.weight.out();
  float* dx = args.dx.f32();
  std::fill_n(dx, rows * in, 0.0f);
  AddProduct({.m = rows, .n = in, .k = out}, RowMajor(args.dy),
             InOut(args.weight).Transposed(), dx);
}

void LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  const int64_t rows = args.x.rows();
  const int64_t in = args.x.columns(), out = args.dy.columns();
  float* dw = args.dw.f32();
  const bool store = args.accumulate == Accumulate::kStore;
  if (store) std::fill_n(dw, in * out, 0.0f);
  const View x = RowMajor(args.x), dy = RowMajor(args.dy);
  if (args.layout == WeightLayout::kInOut) {
    AddProduct({.m = in, .n = out, .k = rows}, x.Transposed(), dy, dw);
  } else {
    AddProduct({.m = out, .n = in, .k = rows}, dy.Transposed(), x, dw);
  }
  if (!args.dbias.present()) return;
  float* dbias = args.dbias.f32();
  if (store) std::fill_n(dbias, out, 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) dbias[o] += dy.data[r * out + o];
  }
}

}  // namespace penstock::server::device::reference
