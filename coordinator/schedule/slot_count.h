// How many numbered slots suffice for what a rank holds. Internal to lowering.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_SLOT_COUNT_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_SLOT_COUNT_H_

#include "absl/types/span.h"

namespace penstock::coordinator::schedule {

// From when to when something holds a slot, in any order of moments. Of n slots
// it is the one with its number mod n.
struct Use {
  int number = 0;
  int from = 0;
  int to = 0;  // Inclusive: the next may have the slot after it.
};

// The most uses at one time. REQUIRES: in order of `from`; so does LeastSlots.
int MostAtOnce(absl::Span<const Use> uses);

struct SlotRange {
  int least = 1;
  int most = 1;
};

// The least count in `range` with which no slot is held twice at a time, or
// `most` where there is none.
//
// Of numbers that do not ascend, which could cost time with the square of the
// uses, the search is given up after some passes over them. Then it is one more
// than the largest difference of two numbers held at one time: that suffices.
int LeastSlots(absl::Span<const Use> uses, SlotRange range);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_SLOT_COUNT_H_
