#include "server/device/reference/optimizer.h"

#include <algorithm>
#include <cmath>

namespace penstock::server::device::reference {

void Adamw(const AdamwArgs& args) {
  const float* scalars = args.scalars.f32();
  const float scale = scalars[kGradScale], lr = scalars[kLearningRate];
  const float c1 = scalars[kBiasCorrection1], c2 = scalars[kBiasCorrection2];
  const float beta1 = static_cast<float>(args.beta1);
  const float beta2 = static_cast<float>(args.beta2);
  const float rest1 = static_cast<float>(1 - args.beta1);
  const float rest2 = static_cast<float>(1 - args.beta2);
  for (int64_t i = 0; i < args.gradient.elements(); ++i) {
    const float g = args.gradient.f32()[i] * scale;
    const float m = beta1 * args.moment1.f32()[i] + rest1 * g;
    const float v = beta2 * args.moment2.f32()[i] + rest2 * g * g;
    float w = args.weight.f32()[i];
    w -= lr * args.weight_decay * w;
    w -= lr * (m / c1) / (std::sqrt(v / c2) + args.epsilon);
    args.next_weight.f32()[i] = w;
    args.next_moment1.f32()[i] = m;
    args.next_moment2.f32()[i] = v;
  }
}

void Sgd(const SgdArgs& args) {
  const float scale = args.scalars.f32()[kGradScale];
  const float lr = args.scalars.f32()[kLearningRate];
  for (int64_t i = 0; i < args.gradient.elements(); ++i) {
    float u = args.gradient.f32()[i] * scale;
    if (args.momentum != 0) {
      u = args.momentum * args.velocity.f32()[i] + u;
      args.next_velocity.f32()[i] = u;
    }
    float w = args.weight.f32()[i];
    w -= lr * args.weight_decay * w;
    args.next_weight.f32()[i] = w - lr * u;
  }
}

void SumSquares(const SumSquaresArgs& args) {
  const float* x = args.x.f32();
  const int64_t size = args.x.elements();
  double total = 0;
  for (int64_t begin = 0; begin < size; begin += kSumSquaresBlock) {
    const int64_t end = std::min(begin + kSumSquaresBlock, size);
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += double{x[i]} * x[i];
    total += sum;
  }
  *args.sum.f64() = total;
}

}  // namespace penstock::server::device::reference
