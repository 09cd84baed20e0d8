// One rank's order of the schedules that hold no more than 1F1B does and put W
// off just so far that the next rank's I comes in time. Internal to zb-h1 and
// zb1p-interleaved, which is zb-h1 with chunks.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_ORDER_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_ORDER_H_

#include <vector>

#include "coordinator/schedule/looped_order.h"

namespace penstock::coordinator::schedule {

// (v-1)N + K-1-r warm-up forwards, then F and I in turn; after the I at
// position i, from i = r on, the W at position i - r; then the W that are left.
std::vector<Command> Zb1pOrder(const LoopedOrder& looped, int rank);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_ZB1P_ORDER_H_
