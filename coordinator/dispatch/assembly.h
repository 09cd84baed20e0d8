// The messages of assembly and the checks of their answers. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_ASSEMBLY_H_
#define PENSTOCK_COORDINATOR_DISPATCH_ASSEMBLY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/dispatch/options.h"
#include "coordinator/dispatch/stage_links.h"
#include "coordinator/planner/plan.h"
#include "coordinator/registry/registry.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

struct CrewMember {
  std::string name;
  std::string host;
  std::string data_address;
  v1::DeviceInfo device;
};
// The stages of a job.
struct Crew {
  std::vector<CrewMember> members;  // By rank.
  std::string device_kind;
  std::string numerics_id;
  int protocol = 0;  // The lowest of what was agreed with each.
};

// K free stages for the job, or fewer than K: there are not enough.
// Candidates are REGISTERED, connected, not aborting, of the pool and of the
// device kind (auto: cuda if there are enough of those, else cpu); by name.
Crew ChooseCrew(const spec::JobSpec& spec, const registry::Registry& registry,
                const StageLinks& links);

// How it stands with a stage that is waited for: "heard of just now", "not
// connected, last heard of 4s ago", or "LOST, last heard of 12s ago: WHY".
std::string DescribeContact(const registry::StageEntry& stage,
                            common::time::MonotonicTime now);

// What a job that is not given its crew waits for: "2 stages of pool default,
// device cpu; free: stage-0; not free: stage-1 (not connected, last heard of 4s
// ago)".
std::string DescribeWanted(const spec::JobSpec& spec,
                           const registry::Registry& registry,
                           const StageLinks& links,
                           common::time::MonotonicTime now);

// Sets crew.numerics_id to the highest id that all of the crew have.
// FailedPrecondition, reason NUMERICS_MISMATCH, names what each has.
absl::Status AgreeOnNumerics(const registry::Registry& registry, Crew& crew);

// Compute threads of a rank; 0: the stage decides.
int ThreadsOf(const spec::JobSpec& spec, const Crew& crew, int rank);

// Whether `rank` reads data: it has the first or the last virtual stage.
bool ReadsData(const schedule::Placement& placement, int rank);

// For the check only the layers count; no slots are planned yet.
v1::CheckInputs CheckInputsFor(const NewJob& job, const std::string& job_id,
                               const planner::StageMap& map, int rank);

struct AssignmentRequest {
  const spec::JobSpec& spec;  // Resolved.
  std::string job_id;
  const planner::Plan& plan;
  const Crew& crew;
  std::string epoch_secret;
  const Options& options;
  absl::Duration command_deadline;
};
v1::Assignment AssignmentFor(const AssignmentRequest& request, int rank);

// InvalidArgument: bytes that no machine has.
absl::Status CheckMemory(const v1::MemoryBytes& memory);

// All that a rank has allocated. REQUIRES: CheckMemory() is OK.
int64_t TotalBytes(const v1::MemoryBytes& memory);

// Every canonical parameter is owned by exactly one rank, and together they
// have the model's elements. Internal: names the parameter and the ranks.
absl::Status CheckCoverage(const planner::ModelShape& model, const Crew& crew,
                           const std::vector<v1::StageReady>& ready);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_ASSEMBLY_H_
