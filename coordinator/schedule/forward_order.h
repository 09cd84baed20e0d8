// The order in which the ranks of a program evaluate: forwards only, over the
// edges and in the slots of its training steps.
//
// Micro-batches go in groups: a rank takes a group through each of its stages
// in turn. So with several chunks a rank has something to do while a group is
// on its way round; with one chunk the order is the micro-batches'.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_FORWARD_ORDER_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_FORWARD_ORDER_H_

#include <vector>

#include "coordinator/schedule/instruction.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// Micro-batches a group: the most up to K that pass through all stages without
// a deadlock, found by running one group with the program's slots and send
// buffers. (A forward waits only for forwards of its own group and of earlier
// ones, so a cycle of waits lies within one group, and all groups are alike.) 1
// always does.
int ForwardGroup(const LoweredProgram& program);

// The forwards of `rank`.
std::vector<Command> ForwardOrder(const LoweredProgram& program, int rank,
                                  int micro_batches, int group);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_FORWARD_ORDER_H_
