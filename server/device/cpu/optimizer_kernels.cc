// AdamW and SGD in one pass, and the sum of squares, per instruction-set level.
#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/optimizer_kernels.cc"
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

void AdamwKernel(const AdamwArgs& args, int64_t first, int64_t last) {
  const D d;
  const float* scalars = args.scalars.f32();
  const float lr = scalars[kLearningRate];
  const V grad_scale = hn::Set(d, scalars[kGradScale]);
  const V keep = hn::Set(d, 1 - lr * args.weight_decay);
  const V step = hn::Set(d, lr / scalars[kBiasCorrection1]);
  const V inverse2 = hn::Set(d, 1 / scalars[kBiasCorrection2]);
  const V epsilon = hn::Set(d, args.epsilon);
  const V beta1 = hn::Set(d, static_cast<float>(args.beta1));
  const V beta2 = hn::Set(d, static_cast<float>(args.beta2));
  const V rest1 = hn::Set(d, static_cast<float>(1 - args.beta1));
  const V rest2 = hn::Set(d, static_cast<float>(1 - args.beta2));
  const float* gradient = args.gradient.f32();
  const float* weight = args.weight.f32();
  const float* moment1 = args.moment1.f32();
  const float* moment2 = args.moment2.f32();
  float* next_weight = args.next_weight.f32();
  float* next_moment1 = args.next_moment1.f32();
  float* next_moment2 = args.next_moment2.f32();
  for (int64_t i = first; i < last; i += kLanes) {
    const V g = hn::Mul(LoadAt(gradient, i, last), grad_scale);
    const V m = hn::MulAdd(beta1, LoadAt(moment1, i, last), hn::Mul(rest1, g));
    const V v = hn::MulAdd(beta2, LoadAt(moment2, i, last),
                           hn::Mul(rest2, hn::Mul(g, g)));
    const V root = hn::Add(hn::Sqrt(hn::Mul(v, inverse2)), epsilon);
    const V w = hn::Mul(LoadAt(weight, i, last), keep);
    StoreAt(hn::Sub(w, hn::Div(hn::Mul(step, m), root)), next_weight, i, last);
    StoreAt(m, next_moment1, i, last);
    StoreAt(v, next_moment2, i, last);
  }
}

void SgdKernel(const SgdArgs& args, int64_t first, int64_t last) {
  const D d;
  const float lr = args.scalars.f32()[kLearningRate];
  const V grad_scale = hn::Set(d, args.scalars.f32()[kGradScale]);
  const V keep = hn::Set(d, 1 - lr * args.weight_decay);
  const V step = hn::Set(d, lr), momentum = hn::Set(d, args.momentum);
  const bool has_velocity = args.momentum != 0;
  const float* gradient = args.gradient.f32();
  const float* weight = args.weight.f32();
  const float* velocity = has_velocity ? args.velocity.f32() : nullptr;
  float* next_weight = args.next_weight.f32();
  float* next_velocity = has_velocity ? args.next_velocity.f32() : nullptr;
  for (int64_t i = first; i < last; i += kLanes) {
    V u = hn::Mul(LoadAt(gradient, i, last), grad_scale);
    if (has_velocity) {
      u = hn::MulAdd(momentum, LoadAt(velocity, i, last), u);
      StoreAt(u, next_velocity, i, last);
    }
    const V w = hn::Mul(LoadAt(weight, i, last), keep);
    StoreAt(hn::NegMulAdd(step, u, w), next_weight, i, last);
  }
}

double SumSquaresKernel(const float* x, int64_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;  // Half as many lanes as D.
  constexpr int64_t kHalf = hn::MaxLanes(dd);
  auto sum = hn::Zero(dd);
  int64_t i = 0;
  for (; i + kHalf <= n; i += kHalf) {
    const auto wide = hn::PromoteTo(dd, hn::LoadU(df, x + i));
    sum = hn::MulAdd(wide, wide, sum);
  }
  double total = hn::GetLane(hn::SumOfLanes(dd, sum));
  for (; i < n; ++i) total += double{x[i]} * x[i];
  return total;
}

void FillOptimizer(Kernels& kernels) {
  kernels.adamw = AdamwKernel;
  kernels.sgd = SgdKernel;
  kernels.sum_squares = SumSquaresKernel;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillOptimizerKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillOptimizer,
             .avx2 = N_AVX2::FillOptimizer,
             .avx512 = N_AVX3::FillOptimizer},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
