// The two tables of what the job file's format has and this version does not
// run yet: values that are refused, and keys that are read and change nothing.
// A feature that gets built deletes its row (and nothing else).
#ifndef PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_
#define PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_

#include <string>
#include <vector>

#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/schema.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

// "not built yet: FEATURE" for each row that `spec` falls under, except where
// `violations` say already that the key is wrong.
void CheckBuilt(const JobSpec& spec, std::vector<Violation>& violations);

// "KEY: accepted, no effect yet (WHY)" for each such key that the job gives,
// and for every job that no recovery is in effect.
void NoteWithoutEffect(const Draft& draft, std::vector<std::string>& notes);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_NOT_BUILT_YET_H_
