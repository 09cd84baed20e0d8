// The arithmetic of the step barrier: what ReleaseStep says, computed once, in
// f64, and sent as f32 (docs/numerics.md). Pure functions of numbers.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_BARRIER_MATH_H_
#define PENSTOCK_COORDINATOR_DISPATCH_BARRIER_MATH_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::dispatch {

// Learning rate of step t, counted from 0; decay ends at decay_steps, or at
// `steps` (of the job) where the schedule has none.
//
//   t < warmup:  lr * (t + 1) / warmup
//   else:        lr * curve(p),  p = (t - warmup) / max(1, decay - warmup),
//                at most 1; linear 1 - (1 - min_ratio) p,
//                cosine min_ratio + (1 - min_ratio) (1 + cos(pi p)) / 2
double LearningRate(const spec::LrSchedule& schedule, double lr, int64_t steps,
                    int64_t t);

// ||sum of gradients||_2 / valid tokens. `sums` are the sums of squares of
// every owned tensor in canonical order, each once; they are added in that
// order. REQUIRES: valid_tokens > 0.
double GradientNorm(absl::Span<const double> sums, int64_t valid_tokens);

// min(1, clip / (norm + 1e-6)) / valid tokens; 1 / valid tokens without
// clipping. REQUIRES: valid_tokens > 0.
double GradientScale(double norm, std::optional<double> clip_norm,
                     int64_t valid_tokens);

// 1 - beta^t for the t-th applied update, from 1.
double BiasCorrection(double beta, int64_t t);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_BARRIER_MATH_H_
