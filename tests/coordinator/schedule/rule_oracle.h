// The rule of lowered_program.h played out in time with real slots and buffers:
// a slow, obvious oracle for the simulator, which only compares times.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_RULE_ORACLE_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_RULE_ORACLE_H_

#include <string>
#include <vector>

#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

struct OracleResult {
  bool finished = false;  // False: everybody waits.
  double makespan = 0;
  std::string broken;  // Not empty: a slot was used twice, or wrong data.
};

// REQUIRES: send_buffers >= 1 and capacity >= 1 on every edge.
OracleResult PlayOut(const LoweredProgram& program, const Costs& costs);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_RULE_ORACLE_H_
