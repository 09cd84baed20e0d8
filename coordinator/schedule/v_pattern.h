// Schedules on the V placement that repeat one pattern of period 6: of each
// micro-batch two F, two I and two W, each in a slot as long as a chunk's F.
// What is made is the order; run eagerly, without the idle slots, it takes no
// longer. Internal to v-half and v-min. Qi et al., arXiv 2405.15362.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_V_PATTERN_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_V_PATTERN_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// A rank's slots of micro-batch 0; of micro-batch m they are 6m later.
// REQUIRES: different modulo 6, and in the order of the dependencies.
struct VSlots {
  int forward_0 = 0;
  int forward_1 = 0;
  int input_1 = 0;
  int input_0 = 0;
};

// Each W goes, oldest I first, into the first slot that is free. `slots` has
// an entry a rank. REQUIRES: shape is one that CheckShape takes, 2 chunks.
Schedule RepeatVPattern(absl::string_view name, const Shape& shape,
                        absl::Span<const VSlots> slots);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_V_PATTERN_H_
