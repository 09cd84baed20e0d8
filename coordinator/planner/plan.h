// The plan of a job: which rank holds which layers, the verified order of
// commands with its slots and edges, and what it will cost. Pure: the same
// request gives the same plan.
#ifndef PENSTOCK_COORDINATOR_PLANNER_PLAN_H_
#define PENSTOCK_COORDINATOR_PLANNER_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/planner/costs.h"
#include "coordinator/planner/memory_model.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/schedule.h"
#include "coordinator/schedule/simulator.h"

namespace penstock::coordinator::planner {

struct PlanRequest {
  ModelShape model;
  BatchShape batch;
  int ranks = 1;  // K
  // v; with `auto` the most that may be tried (auto_schedule.h).
  int chunks = 1;
  int micro_batches = 1;  // M
  Recompute recompute = Recompute::kNone;
  Optimizer optimizer = Optimizer::kAdamW;
  // A generator's name or `auto`, or the order itself.
  std::string schedule = "1f1b";
  std::optional<schedule::Schedule> given;
  // Blocks of each virtual stage; nullopt: balanced.
  std::optional<std::vector<int64_t>> partition;
  // Bytes a rank, of the job file and of the device; nullopt: none.
  std::optional<int64_t> memory_limit;
  std::optional<int64_t> device_memory;
  // What the device adds to each weight matrix, and keeps for its ops; see
  // memory_model.h.
  PackedBytes packed_bytes;
  ScratchBytes scratch_bytes;
  std::vector<int> threads;  // Compute threads by rank; none: 1 each.
  // What a device that models time is told; nullopt: costs are analytic.
  std::optional<ModelledTimes> modelled;
};

struct Plan {
  std::string schedule;              // As job files name it.
  std::string found;                 // By `auto`: which order, for people.
  std::vector<StageLayers> stages;   // By virtual stage.
  schedule::LoweredProgram program;  // Verified.
  schedule::Costs costs;             // In operations, or modelled seconds.
  schedule::Simulation predicted;    // With those.
  std::vector<RankMemory> memory;    // By rank.
};

// Virtual stages a rank that any plan of the request has.
int FewestChunks(const PlanRequest& request);

// Which rank holds which layers.
struct StageMap {
  schedule::Placement placement;
  std::vector<StageLayers> stages;  // By virtual stage.
};

// By what inputs are checked before the job's stages are known. It is the
// plan's map, but for `auto`, whose placement may change with the stages: then
// a loop, on whose first and last rank every placement has the first and the
// last stage. InvalidArgument as MakePlan.
absl::StatusOr<StageMap> MapForChecks(const PlanRequest& request);

// InvalidArgument with a key path (refusal.h): partition, stages, schedule (the
//   generator's or the verifier's word), the virtual device's profile.
// ResourceExhausted, reason OUT_OF_MEMORY, at pipeline.memory_limit: names the
//   rank, what it needs and by how much that is too much.
absl::StatusOr<Plan> MakePlan(const PlanRequest& request);

}  // namespace penstock::coordinator::planner

#endif  // PENSTOCK_COORDINATOR_PLANNER_PLAN_H_
