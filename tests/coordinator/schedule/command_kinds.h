// The kinds of a rank's commands, as the oracles and proofs count them.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_COMMAND_KINDS_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_COMMAND_KINDS_H_

#include <limits>

namespace penstock::coordinator::schedule {

inline constexpr int kF = 0, kI = 1, kW = 2, kKinds = 3;
// Of times: what cannot begin, or has no end.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_COMMAND_KINDS_H_
