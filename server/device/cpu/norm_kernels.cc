// LayerNorm and RMSNorm, per instruction-set level. Row sums are made in f32,
// one per lane, then over the lanes.
#include <cmath>

#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/norm_kernels.cc"
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

void Forward(const LayerNormForwardArgs& args, int64_t first, int64_t last) {
  const D d;
  const int64_t width = args.x.columns();
  const float inverse = 1 / static_cast<float>(width);
  const float* gain = args.gain.f32();
  const float* bias = args.bias.present() ? args.bias.f32() : nullptr;
  for (int64_t r = first; r < last; ++r) {
    const float* x = args.x.f32() + r * width;
    float* y = args.y.f32() + r * width;
    float mean = 0;
    if (bias != nullptr) {
      V sum = hn::Zero(d);
      for (int64_t i = 0; i < width; i += kLanes) {
        sum = hn::Add(sum, LoadAt(x, i, width));
      }
      mean = math::Sum(sum) * inverse;
      args.mean.f32()[r] = mean;
    }
    const V centre = hn::Set(d, mean);
    V squares = hn::Zero(d);
    for (int64_t i = 0; i < width; i += kLanes) {
      const V c = hn::Sub(LoadAt(x, i, width, mean), centre);
      squares = hn::MulAdd(c, c, squares);
    }
    const float rstd =
        1 / std::sqrt(math::Sum(squares) * inverse + args.epsilon);
    args.rstd.f32()[r] = rstd;
    const V factor = hn::Set(d, rstd);
    for (int64_t i = 0; i < width; i += kLanes) {
      const V c = hn::Sub(LoadAt(x, i, width), centre);
      V value = hn::Mul(hn::Mul(c, factor), LoadAt(gain, i, width));
      if (bias != nullptr) value = hn::Add(value, LoadAt(bias, i, width));
      StoreAt(value, y, i, width);
    }
  }
}

// reference/layer_norm.cc has the formula.
void BackwardInput(const LayerNormBackwardInputArgs& args, int64_t first,
                   int64_t last) {
  const D d;
  const int64_t width = args.x.columns();
  const float inverse = 1 / static_cast<float>(width);
  const float* gain = args.gain.f32();
  const bool centred = args.mean.present();
  for (int64_t r = first; r < last; ++r) {
    const float* x = args.x.f32() + r * width;
    const float* dy = args.dy.f32() + r * width;
    const float* residual =
        args.residual.present() ? args.residual.f32() + r * width : nullptr;
    float* dx = args.dx.f32() + r * width;
    const V mean = hn::Set(d, centred ? args.mean.f32()[r] : 0.0f);
    const V rstd = hn::Set(d, args.rstd.f32()[r]);
    V sum_g = hn::Zero(d), sum_gn = hn::Zero(d);
    for (int64_t i = 0; i < width; i += kLanes) {
      const V g = hn::Mul(LoadAt(dy, i, width), LoadAt(gain, i, width));
      const V n = hn::Mul(hn::Sub(LoadAt(x, i, width), mean), rstd);
      sum_g = hn::Add(sum_g, g);
      sum_gn = hn::MulAdd(g, n, sum_gn);
    }
    const V mean_g = hn::Set(d, centred ? math::Sum(sum_g) * inverse : 0.0f);
    const V mean_gn = hn::Set(d, math::Sum(sum_gn) * inverse);
    for (int64_t i = 0; i < width; i += kLanes) {
      const V g = hn::Mul(LoadAt(dy, i, width), LoadAt(gain, i, width));
      const V n = hn::Mul(hn::Sub(LoadAt(x, i, width), mean), rstd);
      V value = hn::Mul(rstd, hn::NegMulAdd(n, mean_gn, hn::Sub(g, mean_g)));
      if (residual != nullptr) {
        value = hn::Add(value, LoadAt(residual, i, width));
      }
      StoreAt(value, dx, i, width);
    }
  }
}

// Columns [first, last); rows ascending.
void BackwardWeight(const LayerNormBackwardWeightArgs& args, int64_t first,
                    int64_t last) {
  const D d;
  const int64_t rows = args.x.rows(), width = args.x.columns();
  const bool add = args.accumulate == Accumulate::kAdd;
  const float* mean = args.mean.present() ? args.mean.f32() : nullptr;
  const float* rstd = args.rstd.f32();
  const float* x = args.x.f32();
  const float* dy = args.dy.f32();
  float* dgain = args.dgain.f32();
  float* dbias = mean != nullptr ? args.dbias.f32() : nullptr;
  for (int64_t c = first; c < last; c += kLanes) {
    V gain = add ? LoadAt(dgain, c, last) : hn::Zero(d);
    V bias = add && dbias != nullptr ? LoadAt(dbias, c, last) : hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      const V centre = hn::Set(d, mean != nullptr ? mean[r] : 0.0f);
      const V grad = LoadAt(dy + r * width, c, last);
      const V value = LoadAt(x + r * width, c, last);
      const V n = hn::Mul(hn::Sub(value, centre), hn::Set(d, rstd[r]));
      gain = hn::MulAdd(grad, n, gain);
      bias = hn::Add(bias, grad);
    }
    StoreAt(gain, dgain, c, last);
    if (dbias != nullptr) StoreAt(bias, dbias, c, last);
  }
}

void FillNorm(Kernels& kernels) {
  kernels.norm_forward = Forward;
  kernels.norm_backward_input = BackwardInput;
  kernels.norm_backward_weight = BackwardWeight;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillNormKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillNorm,
             .avx2 = N_AVX2::FillNorm,
             .avx512 = N_AVX3::FillNorm},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
