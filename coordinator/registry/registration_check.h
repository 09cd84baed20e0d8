// What a stage may say of itself when it registers: all of it is shown to
// people, in log lines, messages and lists. Pure.
#ifndef PENSTOCK_COORDINATOR_REGISTRY_REGISTRATION_CHECK_H_
#define PENSTOCK_COORDINATOR_REGISTRY_REGISTRATION_CHECK_H_

#include "absl/status/status.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::registry {

// InvalidArgument naming the stage, the field and the rule that it breaks.
absl::Status CheckRegistration(const v1::RegisterStageRequest& request);

}  // namespace penstock::coordinator::registry

#endif  // PENSTOCK_COORDINATOR_REGISTRY_REGISTRATION_CHECK_H_
