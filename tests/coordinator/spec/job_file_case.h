// What tests of whole job files share.
#ifndef PENSTOCK_TESTS_COORDINATOR_SPEC_JOB_FILE_CASE_H_
#define PENSTOCK_TESTS_COORDINATOR_SPEC_JOB_FILE_CASE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

inline constexpr absl::string_view kJob = R"(name: tiny
model:
  family: gpt2
  layers: 4
  width: 64
  heads: 4
  context: 32
data:
  train: corpus.txt
batch:
  global: 8
steps: 10
)";

// The errors of a job, one line each.
inline std::string Errors(absl::string_view text,
                          const std::vector<std::string>& overrides = {}) {
  const ParsedJob job =
      ParseJob(text, "job.yaml", ParseOptions{.overrides = overrides});
  return RenderAll(job.violations, job.positions);
}

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_TESTS_COORDINATOR_SPEC_JOB_FILE_CASE_H_
