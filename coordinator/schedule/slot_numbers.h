// Which slot each step's input, output and stash are in, from the slot counts:
// the modulo rules of lowered_program.h. Internal to lowering and verifier.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_

#include <vector>

#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// As of LoweredStep.
struct StepSlots {
  int stash = kNone;
  int receive = kNone;
  int send = kNone;

  friend bool operator==(const StepSlots& a, const StepSlots& b) {
    return a.stash == b.stash && a.receive == b.receive && a.send == b.send;
  }
};

// Numbers the slots of a program's steps one after the other. REQUIRES: edges,
// message numbers and slot counts are set; micro-batches are in range. Borrows
// the program; thread-compatible.
class SlotNumberer {
 public:
  explicit SlotNumberer(const LoweredProgram& program);

  // REQUIRES: called for each step of each rank once, in the rank's order.
  StepSlots Next(const LoweredStep& step);

 private:
  // Of the gradient that `stage` takes from the next stage on its rank.
  int& LocalSlot(int stage, int micro_batch);
  void NumberCommand(const LoweredStep& step, StepSlots* slots);

  const LoweredProgram& program_;
  std::vector<int> local_slot_;   // (stage, micro-batch)
  std::vector<int> handed_over_;  // (stage): gradients given to the one before
};

// Sets stash_slot, receive_slot and send_slot of every step, by SlotNumberer.
void NumberSlots(LoweredProgram* program);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_SLOT_NUMBERS_H_
