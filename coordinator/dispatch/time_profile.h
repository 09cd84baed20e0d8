// profile.json: how long the operations of each virtual stage took, measured by
// one job and modelled by another on the virtual device (virtual.profile).
//
//   {"stages": [{"forward": 0.0021, "backward_input": null,
//                "backward_weight": null, "backward": 0.0043}, ...],
//    "transfer": null}
//
// Seconds of one micro-batch. A job that does not split its backward has only
// `backward`, one that does has the other two; `transfer` is not measured.
// Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_TIME_PROFILE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_TIME_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/planner/costs.h"
#include "coordinator/schedule/costs.h"

namespace penstock::coordinator::dispatch {

// Of what Accounting::MeasuredCosts() found.
std::string TimeProfile(const schedule::Costs& measured);

// By virtual stage. Where only the full backward is known, half of it stands
// for I and for W. InvalidArgument names the stage and the field: what is no
// JSON object of that form, a time below 0 or above spec::kMaxModelledTime, a
// stage without forward or backward.
absl::StatusOr<std::vector<planner::ModelledStage>> ParseTimeProfile(
    absl::string_view text);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_TIME_PROFILE_H_
