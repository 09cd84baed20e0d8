// The paths that a job names: one list, for whoever resolves them (relative to
// the job file for `run`, ROOT:path for `submit`), uploads the small files
// among them, or needs the job without them.
#ifndef PENSTOCK_COORDINATOR_SPEC_PATHS_H_
#define PENSTOCK_COORDINATOR_SPEC_PATHS_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

enum class PathKind {
  kData,   // token or text data, read by stages
  kModel,  // a model folder, read by stages; config.json by the coordinator
  kCheckpoint,  // a checkpoint that is read, or the folder they are written to
  kSmallFile,  // a tokenizer, schedule or profile: travels with a submitted job
};

// Calls `visit` for each path that is given, with its key path; `path` may be
// changed in place and is never empty.
void ForEachPath(
    JobSpec& spec,
    const std::function<void(absl::string_view key_path, PathKind kind,
                             std::string& path)>& visit);

// `spec` with every path empty: what the fingerprint of a job is made of, so
// that moving its files does not change it.
JobSpec WithoutPaths(const JobSpec& spec);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_PATHS_H_
