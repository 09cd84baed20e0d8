// The life of a registered stage, as one table.
//
//                (1)           (2)        (3)          (4)
//   (register) -> REGISTERED -> ASSIGNED -> READY -> RUNNING
//                     ^            |          |         |
//                     +--- (5) ----+----------+---------+
//
//   any of these four: -> LOST (6)
//
//   1 RegisterStage; also from LOST, as a new entry
//   2 chosen for a job: it checks inputs, then assembles
//   3 StageReady
//   4 its first commands are sent
//   5 it has dropped the job
//   6 lease, newer incarnation, dead process (registry.h)
//
// DRAINING and DEGRADED are in the contract for what is not built yet; nothing
// enters them.
#ifndef PENSTOCK_COORDINATOR_REGISTRY_STAGE_STATE_H_
#define PENSTOCK_COORDINATOR_REGISTRY_STAGE_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::coordinator::registry {

// OK, or FailedPrecondition naming both states.
absl::Status CheckTransition(v1::Stage::State from, v1::Stage::State to);

// "REGISTERED", ...
std::string StateName(v1::Stage::State state);

}  // namespace penstock::coordinator::registry

#endif  // PENSTOCK_COORDINATOR_REGISTRY_STAGE_STATE_H_
