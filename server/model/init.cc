#include "server/model/init.h"

#include <algorithm>
#include <cmath>

#include "common/digest/sha256.h"
#include "common/log/log.h"
#include "common/math/elementary.h"
#include "server/device/philox.h"

namespace penstock::server::model {
namespace {

device::PhiloxKey KeyOf(uint64_t seed, const ParameterSpec& spec) {
  common::digest::Sha256 sha;
  sha.UpdateU64(seed);
  sha.Update(spec.name);
  const common::digest::Sha256Digest digest = sha.Finish();
  device::PhiloxKey key{};
  for (int i = 0; i < 8; ++i) {
    key[i / 4] |= uint32_t{digest[i]} << (8 * (i % 4));
  }
  return key;
}

// In (0, 1).
double Uniform(uint32_t high, uint32_t low) {
  const double wide = std::ldexp(static_cast<double>(high), 32) +
                      static_cast<double>(low) + 0.5;
  return std::min(std::ldexp(wide, -64), 1 - 0x1p-53);
}

void FillNormal(const device::PhiloxKey& key, double std, int64_t first,
                absl::Span<float> values) {
  constexpr double kTwoPi = 6.283185307179586;
  const int64_t count = static_cast<int64_t>(values.size());
  for (int64_t e = 0; e < count; e += 2) {
    const uint64_t block = static_cast<uint64_t>(first + e) / 2;
    const device::PhiloxCounter x =
        device::Philox4x32({static_cast<uint32_t>(block),
                            static_cast<uint32_t>(block >> 32), 0x54494e49u, 0},
                           key);
    const double radius =
        std::sqrt(-2 * common::math::Log(Uniform(x[0], x[1])));
    const double angle = kTwoPi * Uniform(x[2], x[3]);
    values[e] = static_cast<float>(std * radius * common::math::Cos(angle));
    if (e + 1 < count) {
      values[e + 1] =
          static_cast<float>(std * radius * common::math::Sin(angle));
    }
  }
}

}  // namespace

void Initialise(uint64_t seed, const ParameterSpec& spec,
                absl::Span<float> values) {
  CHECK_EQ(static_cast<int64_t>(values.size()), spec.shape.elements());
  InitialisePart(seed, spec, 0, values);
}

void InitialisePart(uint64_t seed, const ParameterSpec& spec, int64_t first,
                    absl::Span<float> values) {
  CHECK(first >= 0 && first % 2 == 0 &&
        first + static_cast<int64_t>(values.size()) <= spec.shape.elements())
      << spec.name << " from " << first;
  switch (spec.initial) {
    case Initial::kZeros:
      std::fill(values.begin(), values.end(), 0.0f);
      return;
    case Initial::kOnes:
      std::fill(values.begin(), values.end(), 1.0f);
      return;
    case Initial::kNormal:
      FillNormal(KeyOf(seed, spec), spec.initial_std, first, values);
      return;
  }
}

}  // namespace penstock::server::model
