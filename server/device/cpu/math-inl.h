// Vector exp and what reads and writes whole and partial vectors. Included once
// per Highway target.
#if defined(PENSTOCK_SERVER_DEVICE_CPU_MATH_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_SERVER_DEVICE_CPU_MATH_INL_H_
#undef PENSTOCK_SERVER_DEVICE_CPU_MATH_INL_H_
#else
#define PENSTOCK_SERVER_DEVICE_CPU_MATH_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

#if HWY_TARGET <= HWY_SSE4  // Not the fallback that foreach_target wants.
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {
namespace math {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());  // Exact on x86.

// exp(x) to about one unit in the last place; 0 below -87.3, and x is taken as
// 88 above it. (Cephes expf: 2^n times a polynomial on [-ln2/2, ln2/2].)
HWY_INLINE V Exp(V x) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, hn::Set(d, -87.3f));
  x = hn::Min(hn::Max(x, hn::Set(d, -87.3f)), hn::Set(d, 88.0f));
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V nf = hn::ConvertTo(d, n);
  V r = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, hn::Mul(r, r), r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  const V scale =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, scale));
}

// 1 / (1 + e), for e = exp(-x) below infinity: the logistic function.
HWY_INLINE V Logistic(V e) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, e));
}

// n < kLanes elements, the other lanes `fill`.
HWY_INLINE V LoadSome(const float* from, int64_t n, float fill) {
  HWY_ALIGN float lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = i < n ? from[i] : fill;
  return hn::Load(D(), lanes);
}
HWY_INLINE void StoreSome(V v, float* to, int64_t n) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, D(), lanes);
  std::memcpy(to, lanes, n * sizeof(float));
}

// The first lanes of a row's `n` elements from `i` on: whole or partial.
HWY_INLINE V LoadAt(const float* row, int64_t i, int64_t n, float fill = 0) {
  return i + kLanes <= n ? hn::LoadU(D(), row + i)
                         : LoadSome(row + i, n - i, fill);
}
HWY_INLINE void StoreAt(V v, float* row, int64_t i, int64_t n) {
  if (i + kLanes <= n) {
    hn::StoreU(v, D(), row + i);
  } else {
    StoreSome(v, row + i, n - i);
  }
}

HWY_INLINE float Sum(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }
HWY_INLINE float Max(V v) { return hn::GetLane(hn::MaxOfLanes(D(), v)); }

}  // namespace math
}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // level

#endif  // include guard
