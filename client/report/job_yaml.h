// What the report shows of job.yaml.
#ifndef PENSTOCK_CLIENT_REPORT_JOB_YAML_H_
#define PENSTOCK_CLIENT_REPORT_JOB_YAML_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::client::report {

// Key paths to values, as they stand in the resolved file that the coordinator
// writes: "pipeline.schedule" to "1f1b". For showing only: this is no parser of
// job files (the coordinator has the only one). It takes lines of "key: value",
// two spaces a level, also those in comments, which is where the coordinator
// puts what config.json decided; other lines it passes over.
std::map<std::string, std::string> ResolvedKeys(absl::string_view text);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_JOB_YAML_H_
