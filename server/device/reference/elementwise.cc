#include "server/device/reference/elementwise.h"

#include "common/math/elementary.h"

namespace penstock::server::device::reference {

using common::math::Sigmoid;
using common::math::Tanh;

// y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3)
void GeluForward(const GeluForwardArgs& args) {
  constexpr double kScale = 0.7978845608028654, kCubic = 0.044715;
  for (int64_t i = 0; i < args.x.elements(); ++i) {
    const double x = args.x.f32()[i];
    const double t = Tanh(kScale * (x + kCubic * x * x * x));
    args.y.f32()[i] = static_cast<float>(0.5 * x * (1 + t));
    args.slope.f32()[i] =
        static_cast<float>(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale *
                                               (1 + 3 * kCubic * x * x));
  }
}

void Multiply(const MultiplyArgs& args) {
  for (int64_t i = 0; i < args.y.elements(); ++i) {
    args.y.f32()[i] = args.a.f32()[i] * args.b.f32()[i];
  }
}

void SwigluForward(const SwigluForwardArgs& args) {
  for (int64_t r = 0; r < args.y.rows(); ++r) {
    const float* gates = args.gate.f32() + r * args.gate.row_stride();
    const float* ups = args.up.f32() + r * args.up.row_stride();
    float* y = args.y.f32() + r * args.y.columns();
    for (int64_t i = 0; i < args.y.columns(); ++i) {
      const double gate = gates[i];
      y[i] = static_cast<float>(gate * Sigmoid(gate) * ups[i]);
    }
  }
}

// silu'(g) = s + g s (1 - s), s = sigmoid(g)
void SwigluBackward(const SwigluBackwardArgs& args) {
  for (int64_t r = 0; r < args.dy.rows(); ++r) {
    const float* gates = args.gate.f32() + r * args.gate.row_stride();
    const float* ups = args.up.f32() + r * args.up.row_stride();
    const float* dys = args.dy.f32() + r * args.dy.columns();
    float* dgate = args.dgate.f32() + r * args.dgate.row_stride();
    float* dup = args.dup.f32() + r * args.dup.row_stride();
    for (int64_t i = 0; i < args.dy.columns(); ++i) {
      const double gate = gates[i], up = ups[i];
      const double dy = dys[i], s = Sigmoid(gate);
      dgate[i] = static_cast<float>(dy * up * s * (1 + gate * (1 - s)));
      dup[i] = static_cast<float>(dy * gate * s);
    }
  }
}

void Add(const AddArgs& args) {
  for (int64_t i = 0; i < args.y.elements(); ++i) {
    args.y.f32()[i] = args.a.f32()[i] + args.b.f32()[i];
  }
}

}  // namespace penstock::server::device::reference
