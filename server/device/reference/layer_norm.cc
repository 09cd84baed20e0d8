#include "server/device/reference/layer_norm.h"

#include <algorithm>
#include <cmath>

namespace penstock::server::device::reference {

void LayerNormForward(const LayerNormForwardArgs& args) {
  const int64_t rows = args.x.rows(), width = args.x.columns();
  const float* gain = args.gain.f32();
  const bool centred = args.bias.present();
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.f32() + r * width;
    float* y = args.y.f32() + r * width;
    double mean = 0;
    if (centred) {
      for (int64_t i = 0; i < width; ++i) mean += x[i];
      mean /= width;
      args.mean.f32()[r] = static_cast<float>(mean);
    }
    double variance = 0;
    for (int64_t i = 0; i < width; ++i) {
      variance += (x[i] - mean) * (x[i] - mean);
    }
    variance /= width;
    const double rstd = 1 / std::sqrt(variance + double{args.epsilon});
    args.rstd.f32()[r] = static_cast<float>(rstd);
    for (int64_t i = 0; i < width; ++i) {
      y[i] = static_cast<float>((x[i] - mean) * rstd * gain[i] +
                                (centred ? args.bias.f32()[i] : 0.0f));
    }
  }
}

// With n = (x - mean) rstd and g = dy gain:
// dx = rstd (g - mean(g) - n mean(g n)); RMSNorm has no mean(g).
void LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) {
  const int64_t rows = args.x.rows(), width = args.x.columns();
  const float* gain = args.gain.f32();
  const bool centred = args.mean.present();
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.f32() + r * width;
    const float* dy = args.dy.f32() + r * width;
    const double mean = centred ? args.mean.f32()[r] : 0.0f;
    const double rstd = args.rstd.f32()[r];
    double sum_g = 0, sum_gn = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double g = double{dy[i]} * gain[i];
      sum_g += g;
      sum_gn += g * (x[i] - mean) * rstd;
    }
    const double mean_g = centred ? sum_g / width : 0;
    const double mean_gn = sum_gn / width;
    float* dx = args.dx.f32() + r * width;
    for (int64_t i = 0; i < width; ++i) {
      const double g = double{dy[i]} * gain[i];
      const double n = (x[i] - mean) * rstd;
      const float norm = static_cast<float>(rstd * (g - mean_g - n * mean_gn));
      dx[i] = args.residual.present()
                  ? norm + args.residual.f32()[r * width + i]
                  : norm;
    }
  }
}

void LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  const int64_t rows = args.x.rows(), width = args.x.columns();
  const bool centred = args.mean.present();
  float* dgain = args.dgain.f32();
  if (args.accumulate == Accumulate::kStore) {
    std::fill_n(dgain, width, 0.0f);
    if (centred) std::fill_n(args.dbias.f32(), width, 0.0f);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = args.x.f32() + r * width;
    const float* dy = args.dy.f32() + r * width;
    const float mean = centred ? args.mean.f32()[r] : 0.0f;
    const float rstd = args.rstd.f32()[r];
    for (int64_t i = 0; i < width; ++i) {
      dgain[i] += dy[i] * ((x[i] - mean) * rstd);
      if (centred) args.dbias.f32()[i] += dy[i];
    }
  }
}

}  // namespace penstock::server::device::reference
