// The life of a registered stage, as one table.
//
//                (1)           (2)        (3)          (4)
//   (register) -> REGISTERED -> ASSIGNED -> READY -> RUNNING
//                     ^            |          |         |
//                     +--- (5) ----+----------+---------+
//
//   any of these four:  <-> DEGRADED (6, back 7)   -> DRAINING (8)
//   DRAINING -> REGISTERED (5)
//   any but LOST: -> LOST (9)
//
//   1 RegisterStage; also from LOST, as a new entry
//   2 chosen for a job: it checks inputs, then assembles
//   3 StageReady
//   4 its first commands are sent
//   5 it has dropped the job
//   6 it says that it is unwell, or its engine stands still with work queued
//   7 it moves again
//   8 it is to hand over its work
//   9 lease, newer incarnation, dead process (registry.h)
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
