// ZB-H1: 1F1B with the backward split and rank r's weight gradients r places
// late, so that the gradient reaches the ranks before sooner. Bubble
// (K-1)(F+I-W) where M >= K; at F = I = W makespan 2M+2K-1 below. Peak
// min(K, M) activations from F to W, min(K-r, M) from F to I. Qi et al., arXiv
// 2401.10241.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ZB_H1_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ZB_H1_H_

#include "absl/status/statusor.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Any K and M. InvalidArgument unless shape.chunks is 1.
absl::StatusOr<Schedule> GenerateZbH1(const Shape& shape);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ZB_H1_H_
