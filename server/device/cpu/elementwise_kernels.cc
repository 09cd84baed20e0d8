// Activations, sums, products and dropout, per instruction-set level.
#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/elementwise_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "server/device/cpu/math-inl.h"
#include "server/device/cpu/philox-inl.h"

// Not the fallback that foreach_target also wants.
#if HWY_TARGET <= HWY_SSE4
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using math::D;
using math::kLanes;
using math::LoadAt;
using math::StoreAt;
using math::V;

void AddKernel(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(hn::Add(LoadAt(a, i, n), LoadAt(b, i, n)), y, i, n);
  }
}

void MultiplyKernel(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreAt(hn::Mul(LoadAt(a, i, n), LoadAt(b, i, n)), y, i, n);
  }
}

// (1 + tanh u) / 2 is the logistic function of 2u, so that one exp does:
// s = logistic(2u), y = x s, dy/dx = s + x s (1 - s) 2u'. Beyond 10 both are
// constant in f32.
void GeluKernel(const float* x, float* y, float* slope, int64_t n) {
  const D d;
  const V scale2 = hn::Set(d, 2 * 0.7978845608f);
  const V cubic = hn::Set(d, 0.044715f), cubic3 = hn::Set(d, 3 * 0.044715f);
  const V one = hn::Set(d, 1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const V value = LoadAt(x, i, n);
    const V c = hn::Min(hn::Max(value, hn::Set(d, -10.0f)), hn::Set(d, 10.0f));
    const V square = hn::Mul(c, c);
    const V u2 = hn::Mul(hn::Mul(scale2, c), hn::MulAdd(cubic, square, one));
    const V e = math::Exp(hn::Neg(u2));
    const V s = math::Logistic(e);
    const V slope2 = hn::Mul(scale2, hn::MulAdd(cubic3, square, one));
    // 1 - s = e s, without cancellation.
    const V rest = hn::Mul(hn::Mul(c, s), hn::Mul(hn::Mul(e, s), slope2));
    StoreAt(hn::Mul(value, s), y, i, n);
    StoreAt(hn::Add(s, rest), slope, i, n);
  }
}

HWY_INLINE V Sigmoid(V x) { return math::Logistic(math::Exp(hn::Neg(x))); }

void SwigluKernel(const float* gate, const float* up, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const V g = LoadAt(gate, i, n);
    StoreAt(hn::Mul(hn::Mul(g, Sigmoid(g)), LoadAt(up, i, n)), y, i, n);
  }
}

void SwigluBackwardKernel(const float* gate, const float* up, const float* dy,
                          float* dgate, float* dup, int64_t n) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const V g = LoadAt(gate, i, n), u = LoadAt(up, i, n);
    const V grad = LoadAt(dy, i, n), s = Sigmoid(g);
    const V slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
    StoreAt(hn::Mul(hn::Mul(grad, u), slope), dgate, i, n);
    StoreAt(hn::Mul(grad, hn::Mul(g, s)), dup, i, n);
  }
}

void DropoutKernel(const DropoutArgs& args, int64_t sample, int64_t first,
                   int64_t last) {
  constexpr int64_t kWords = 1024;  // At a time.
  HWY_ALIGN uint32_t words[kWords + philox::kSlack];
  const Dropout& dropout = args.dropout;
  const DropoutWords source({.seed = dropout.seed,
                             .step = dropout.position.i64()[0],
                             .sample = dropout.position.i64()[1] + sample,
                             .site = dropout.site});
  const uint32_t threshold = KeepThreshold(dropout.rate);
  const float scale = 1 / (1 - dropout.rate);
  const int64_t base = sample * args.x.shape().dim(1) * args.x.shape().dim(2);
  const float* x = args.x.f32() + base;
  const float* residual =
      args.residual.present() ? args.residual.f32() + base : nullptr;
  float* y = args.y.f32() + base;
  for (int64_t begin = first; begin < last; begin += kWords) {
    const int64_t end = std::min(begin + kWords, last);
    philox::Words(source, begin / 4, (end - begin + 3) / 4, words);
    for (int64_t i = begin; i < end; i += kLanes) {
      const V factor = philox::Factors(words + (i - begin), threshold, scale);
      // Dropped elements are 0 even where x is infinite.
      V value = hn::IfThenElseZero(hn::Gt(factor, hn::Zero(D())),
                                   hn::Mul(LoadAt(x, i, end), factor));
      if (residual != nullptr) {
        value = hn::Add(LoadAt(residual, i, end), value);
      }
      StoreAt(value, y, i, end);
    }
  }
}

void RopeKernel(const RopeArgs& args, int64_t first, int64_t last) {
  const int64_t half = args.head_dim / 2;
  const int64_t heads = args.x.columns() / args.head_dim;
  const bool forward = args.direction == RopeDirection::kForward;
  for (int64_t r = first; r < last; ++r) {
    const float* cosine = args.cosine.f32() + r % args.seq * half;
    const float* sine = args.sine.f32() + r % args.seq * half;
    for (int64_t h = 0; h < heads; ++h) {
      float* low = args.x.f32() + r * args.x.row_stride() + h * args.head_dim;
      float* high = low + half;
      for (int64_t i = 0; i < half; i += kLanes) {
        const V c = LoadAt(cosine, i, half);
        const V table = LoadAt(sine, i, half);
        const V s = forward ? table : hn::Neg(table);
        const V a = LoadAt(low, i, half), b = LoadAt(high, i, half);
        StoreAt(hn::NegMulAdd(b, s, hn::Mul(a, c)), low, i, half);
        StoreAt(hn::MulAdd(a, s, hn::Mul(b, c)), high, i, half);
      }
    }
  }
}

void FillElementwise(Kernels& kernels) {
  kernels.add = AddKernel;
  kernels.multiply = MultiplyKernel;
  kernels.gelu = GeluKernel;
  kernels.swiglu = SwigluKernel;
  kernels.swiglu_backward = SwigluBackwardKernel;
  kernels.dropout = DropoutKernel;
  kernels.rope = RopeKernel;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillElementwiseKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillElementwise,
             .avx2 = N_AVX2::FillElementwise,
             .avx512 = N_AVX3::FillElementwise},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
