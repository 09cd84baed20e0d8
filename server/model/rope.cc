#include "server/model/rope.h"

#include "common/log/log.h"
#include "common/math/elementary.h"

namespace penstock::server::model {
namespace {

// Llama 3: wavelengths shorter than original / high_freq_factor are kept,
// longer than original / low_freq_factor are stretched by the factor, and those
// between are mixed.
double Llama3(double frequency, const RopeScaling& scaling) {
  constexpr double kTwoPi = 6.283185307179586;
  const double wavelength = kTwoPi / frequency;
  const double original = static_cast<double>(scaling.original_context);
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) {
    return frequency / scaling.factor;
  }
  const double smooth = (original / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

std::vector<float> InverseFrequencies(const ModelConfig& config) {
  const int64_t pairs = config.head_dim / 2;
  std::vector<float> frequencies(pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const float exponent =
        static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    const float power =
        static_cast<float>(common::math::Pow(config.rope_theta, exponent));
    float frequency = 1.0f / power;
    switch (config.rope_scaling.kind) {
      case RopeScalingKind::kNone:
        break;
      case RopeScalingKind::kLinear:
        frequency /= static_cast<float>(config.rope_scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequency = static_cast<float>(Llama3(frequency, config.rope_scaling));
        break;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

void FillRopeTables(const ModelConfig& config, int64_t seq,
                    absl::Span<float> cosine, absl::Span<float> sine) {
  const std::vector<float> frequencies = InverseFrequencies(config);
  const int64_t pairs = static_cast<int64_t>(frequencies.size());
  CHECK_EQ(static_cast<int64_t>(cosine.size()), seq * pairs);
  CHECK_EQ(cosine.size(), sine.size());
  for (int64_t t = 0; t < seq; ++t) {
    for (int64_t i = 0; i < pairs; ++i) {
      // The angle is an f32 in transformers too.
      const float angle = static_cast<float>(t) * frequencies[i];
      cosine[t * pairs + i] = static_cast<float>(common::math::Cos(angle));
      sine[t * pairs + i] = static_cast<float>(common::math::Sin(angle));
    }
  }
}

}  // namespace penstock::server::model
