// The only parser of job files in the project: bytes and `--set` list in, a
// checked JobSpec or every violation at once out.
#ifndef PENSTOCK_COORDINATOR_SPEC_JOB_PARSER_H_
#define PENSTOCK_COORDINATOR_SPEC_JOB_PARSER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/overrides.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

struct ParseOptions {
  // `KEY=VALUE` of --set, applied in order: dotted keys, VALUE is YAML. How
  // many there may be: overrides.h.
  std::vector<std::string> overrides;
  // Those that flags stand for, applied after them.
  std::vector<Override> flag_overrides;
  // Returns the bytes of config.json in the folder that model.from names, as
  // the job file writes it (relative to the job file, or ROOT:path). Its
  // errors become violations of model.from. Empty: model.from is refused.
  std::function<absl::StatusOr<std::string>(absl::string_view folder)>
      read_config_json;
};

struct ParsedJob {
  // Complete and checked if `violations` is empty, unspecified otherwise.
  JobSpec spec;
  // Everything that is wrong, as far as the spec alone shows it.
  std::vector<Violation> violations;
  // Where each key was given; also for violations that other rooms return.
  PositionMap positions;
  // What the user should be told about values chosen for them.
  std::vector<std::string> notes;

  bool ok() const { return violations.empty(); }
  // OK, or InvalidArgument, one line a violation: "FILE:LINE:COL: key: ...".
  absl::Status status() const { return ToStatus(violations, positions); }
};

// `bytes` are the job file (at most 1 MiB), `file` its name as messages show
// it; the name's stem is the job's default name. Never throws, opens no file.
ParsedJob ParseJob(absl::string_view bytes, absl::string_view file,
                   const ParseOptions& options);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_JOB_PARSER_H_
