// Which slot each step's input, output and stash are in, from the slot counts:
// the modulo rules of lowered_program.h. Internal to lowering and verifier.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_

#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// Sets stash_slot, receive_slot and send_slot of every step. REQUIRES: edges,
// message numbers and slot counts are set; micro-batches are in range.
void NumberSlots(LoweredProgram* program);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_
