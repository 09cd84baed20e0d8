// summary.json, trace.json and the index of the trained model: what is written
// when a job ends. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_SUMMARY_H_
#define PENSTOCK_COORDINATOR_DISPATCH_SUMMARY_H_

#include <optional>
#include <string>
#include <vector>

#include "coordinator/dispatch/accounting.h"
#include "coordinator/dispatch/assembly.h"
#include "coordinator/dispatch/realisation.h"
#include "coordinator/planner/plan.h"
#include "coordinator/spec/job_spec.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::dispatch {

// What there was when the job ended; parts that it did not reach are null.
struct SummaryRequest {
  const v1::Job& job;
  const Crew& crew;                        // Empty before PLANNING.
  const planner::Plan* plan = nullptr;     // Borrowed.
  const Accounting* accounting = nullptr;  // Borrowed.
  // SimulateAsMeasured from plan and accounting; borrowed.
  const SimulatedStep* simulated = nullptr;
  const std::vector<v1::StageReady>* ready = nullptr;
  const std::vector<v1::EndReport>* ends = nullptr;
  std::string fingerprint;
  v1::BuildInfo build;
};

// The keys of docs/operations.md, and `cause`, `pipeline` and `predicted`
// numbers beside them. Pretty-printed, ends in a newline.
std::string Summary(const SummaryRequest& request);

// SHA-256 of the resolved spec without paths, and the data's digest. Hex.
std::string Fingerprint(const spec::JobSpec& spec,
                        const std::string& data_digest);

// Chrome's trace format, one thread a rank, microseconds since `origin`.
std::string ChromeTrace(const Crew& crew, const std::vector<TracedStep>& steps,
                        common::time::MonotonicTime origin);

// "model.safetensors" of a whole model, else "model-00002-of-00004.safetensors"
// for rank 1 of 4.
std::string ShardFile(int rank, int ranks);
// model.safetensors.index.json: which shard has which tensor.
std::string ShardIndex(const std::vector<v1::EndReport>& ends,
                       int64_t total_bytes);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_SUMMARY_H_
