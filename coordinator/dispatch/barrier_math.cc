#include "coordinator/dispatch/barrier_math.h"

#include <algorithm>
#include <cmath>

#include "common/log/log.h"
#include "common/math/elementary.h"

namespace penstock::coordinator::dispatch {

double LearningRate(const spec::LrSchedule& schedule, double lr, int64_t steps,
                    int64_t t) {
  const int64_t warmup = schedule.warmup_steps;
  if (t < warmup) {
    return lr * static_cast<double>(t + 1) / static_cast<double>(warmup);
  }
  const int64_t decay = schedule.decay_steps.value_or(steps);
  const double progress = std::min(
      1.0, static_cast<double>(t - warmup) /
               static_cast<double>(std::max<int64_t>(1, decay - warmup)));
  switch (schedule.kind) {
    case spec::LrKind::kConstant:
      return lr;
    case spec::LrKind::kLinear:
      return lr * (1 - (1 - schedule.min_ratio) * progress);
    case spec::LrKind::kCosine:
      return lr * (schedule.min_ratio +
                   (1 - schedule.min_ratio) *
                       (1 + common::math::Cos(M_PI * progress)) / 2);
  }
  CHECK(false) << "unknown learning rate schedule";
  return 0;
}

double GradientNorm(absl::Span<const double> sums, int64_t valid_tokens) {
  CHECK_GT(valid_tokens, 0);
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total) / static_cast<double>(valid_tokens);
}

double GradientScale(double norm, std::optional<double> clip_norm,
                     int64_t valid_tokens) {
  CHECK_GT(valid_tokens, 0);
  const double clip =
      clip_norm.has_value() ? std::min(1.0, *clip_norm / (norm + 1e-6)) : 1.0;
  return clip / static_cast<double>(valid_tokens);
}

double BiasCorrection(double beta, int64_t t) {
  return 1 - common::math::IntegerPow(beta, t);
}

}  // namespace penstock::coordinator::dispatch
