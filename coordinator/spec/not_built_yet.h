// The one table of values that the job file's format has and this version does
// not run yet. A feature that gets built deletes its row (and nothing else).
#ifndef PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_
#define PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_

#include <vector>

#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

// "not built yet: FEATURE" for each row that `spec` falls under, except where
// `violations` say already that the key is wrong.
void CheckBuilt(const JobSpec& spec, std::vector<Violation>& violations);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_
