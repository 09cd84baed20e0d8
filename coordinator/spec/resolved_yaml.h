// Writes a JobSpec as a job file: job.yaml of the run directory.
#ifndef PENSTOCK_COORDINATOR_SPEC_RESOLVED_YAML_H_
#define PENSTOCK_COORDINATOR_SPEC_RESOLVED_YAML_H_

#include <string>

#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

// Every value is spelled out, defaults included, so that the file means the
// same whatever later versions' defaults are; parsing it gives an equal
// JobSpec (with the same config.json where there is model.from). A value that
// the data decide and have not decided yet stands in a comment.
std::string ToResolvedYaml(const JobSpec& spec);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_RESOLVED_YAML_H_
