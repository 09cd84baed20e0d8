// Cross entropy and its gradient, per instruction-set level. Exponentials are
// summed in f32, one sum per lane of four vectors, the lanes in f64.
#include <algorithm>

#include "common/math/elementary.h"
#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/loss_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "server/device/cpu/math-inl.h"

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

// sum exp(x - max): four vectors of sums, then their lanes in f64.
HWY_INLINE double SumExp(const float* x, int64_t n, float max) {
  const D d;
  const V top = hn::Set(d, max);
  V sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      const V at = hn::LoadU(d, x + i + v * kLanes);
      sum[v] = hn::Add(sum[v], math::Exp(hn::Sub(at, top)));
    }
  }
  for (int v = 0; i < n; i += kLanes, ++v) {
    // Lanes beyond the row are far below the maximum: exp gives 0.
    const V at = LoadAt(x, i, n, max - 1000.0f);
    sum[v] =
        hn::Add(sum[v], i + kLanes <= n
                            ? math::Exp(hn::Sub(at, top))
                            : hn::IfThenElseZero(hn::FirstN(d, n - i),
                                                 math::Exp(hn::Sub(at, top))));
  }
  HWY_ALIGN float lanes[4 * kLanes];
  for (int v = 0; v < 4; ++v) hn::Store(sum[v], d, lanes + v * kLanes);
  double total = 0;
  for (const float lane : lanes) total += lane;
  return total;
}

HWY_INLINE float RowMax(const float* x, int64_t n) {
  V max = hn::Set(D(), x[0]);
  for (int64_t i = 0; i < n; i += kLanes) {
    max = hn::Max(max, LoadAt(x, i, n, x[0]));
  }
  return math::Max(max);
}

void ForwardRows(const CrossEntropyForwardArgs& args, int64_t first,
                 int64_t last, double* loss) {
  const int64_t vocab = args.logits.columns();
  for (int64_t r = first; r < last; ++r) {
    const float* logits = args.logits.f32() + r * vocab;
    const float max = RowMax(logits, vocab);
    const double log_sum = common::math::Log(SumExp(logits, vocab, max));
    args.logsum.f32()[r] = static_cast<float>(max + log_sum);
    const int32_t label = args.labels.i32()[r];
    loss[r] =
        label == kIgnoredLabel ? 0 : double{max} - logits[label] + log_sum;
  }
}

void BackwardRows(const CrossEntropyBackwardArgs& args, int64_t first,
                  int64_t last) {
  const int64_t vocab = args.logits.columns();
  for (int64_t r = first; r < last; ++r) {
    float* row = args.logits.f32() + r * vocab;
    const int32_t label = args.labels.i32()[r];
    if (label == kIgnoredLabel) {
      std::fill_n(row, vocab, 0.0f);
      continue;
    }
    const V logsum = hn::Set(D(), args.logsum.f32()[r]);
    for (int64_t i = 0; i < vocab; i += kLanes) {
      const V at = LoadAt(row, i, vocab);
      StoreAt(math::Exp(hn::Sub(at, logsum)), row, i, vocab);
    }
    row[label] -= 1;
  }
}

void FillLoss(Kernels& kernels) {
  kernels.cross_entropy_forward = ForwardRows;
  kernels.cross_entropy_backward = BackwardRows;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillLossKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillLoss,
             .avx2 = N_AVX2::FillLoss,
             .avx512 = N_AVX3::FillLoss},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
