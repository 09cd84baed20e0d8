#include "coordinator/planner/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "coordinator/planner/costs.h"
#include "coordinator/planner/partitioner.h"
#include "coordinator/planner/refusal.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::planner {

using common::status::WithKeyPath;

namespace {

// What the schedule room says, at the key that is to blame.
absl::Status Blame(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    return WithKeyPath(
        common::status::WithReason(status, common::status::kReasonOutOfMemory),
        "pipeline.memory_limit");
  }
  return WithKeyPath(status, "pipeline.schedule");
}

// Plans are made in memory and a step's commands fit in one message.
constexpr int64_t kMostMicroBatches = 32768;

// Memory is counted in 64 bits: what comes near is refused by an estimate in
// f64, from above (weights 16 times: two versions, gradients, two states in two
// versions, packed both ways and rounded up; all micro-batches in flight).
constexpr double kMostBytes = 0x1p60;

absl::Status CheckBytes(const PlanRequest& request) {
  const ModelShape& model = request.model;
  const auto layers = static_cast<double>(model.layers);
  const auto width = static_cast<double>(model.width);
  const auto ffn = static_cast<double>(model.ffn_width);
  const auto vocab = static_cast<double>(model.vocab);
  const double queries =
      static_cast<double>(model.heads) * static_cast<double>(model.head_dim);
  const double weights =
      layers * width * (4 * queries + 3 * ffn + 16) +
      width * (2 * vocab + static_cast<double>(model.context));
  if (16 * sizeof(float) * weights > kMostBytes) {
    return Refuse("model",
                  absl::StrFormat("about %.2g weights are more than memory is "
                                  "planned for (2^60 bytes)",
                                  weights));
  }
  const double rows =
      static_cast<double>(request.batch.rows()) * request.micro_batches;
  const double values =
      rows * (layers * (24 * width + 16 * queries + 8 * ffn) + 4 * vocab);
  if (sizeof(float) * values > kMostBytes) {
    return Refuse("batch.global",
                  absl::StrFormat("about %.2g activations a step are more than "
                                  "memory is planned for (2^60 bytes)",
                                  values));
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const PlanRequest& request) {
  RETURN_IF_ERROR(CheckBytes(request));
  const int64_t stages = int64_t{request.ranks} * request.chunks;
  if (request.micro_batches <= kMostMicroBatches &&
      stages * request.micro_batches <= schedule::kMaxCells) {
    return absl::OkStatus();
  }
  return Refuse("batch.micro_batch",
                absl::StrCat(request.micro_batches, " micro-batches a step on ",
                             stages, " virtual stages; at most ",
                             kMostMicroBatches, ", and ", schedule::kMaxCells,
                             " forwards a step, are planned; use larger "
                             "micro-batches"));
}

std::optional<int64_t> Limit(const PlanRequest& request) {
  if (!request.memory_limit.has_value()) return request.device_memory;
  if (!request.device_memory.has_value()) return request.memory_limit;
  return std::min(*request.memory_limit, *request.device_memory);
}

absl::Status TooMuch(int rank, int64_t needed, int64_t limit,
                     absl::string_view what) {
  return RefuseMemory(
      "pipeline.memory_limit",
      absl::StrCat("stage ", rank, " needs ", needed, " bytes ", what, ", ",
                   needed - limit, " more than its limit of ", limit,
                   "; use more stages, a smaller micro_batch, or recompute: "
                   "full"));
}

// What is left of the limit on each rank for slots and buffers, in the words
// of the schedule room. It knows one size of an activation slot for all stages
// and counts send buffers with it: the largest stage's is taken, and what that
// adds to each send buffer is given back. Sizes that it does not take are cut
// to its largest: PredictMemory's sum is checked against the limit at the end.
absl::StatusOr<schedule::Memory> SlotMemory(const MemoryRequest& request,
                                            const schedule::Placement& ranks,
                                            int64_t limit) {
  const auto counted = [](int64_t bytes) {
    return std::min(bytes, schedule::kMaxBytes);
  };
  schedule::Memory memory;
  std::vector<int64_t> slots;  // By virtual stage.
  int64_t largest = 0, boundary = 0;
  for (const StageLayers& layers : request.stages) {
    const ChunkMemory chunk =
        PredictChunk(request.model, request.batch, layers, request.recompute);
    memory.stages.push_back(
        {.held_until_input = counted(chunk.slot),
         .held_until_weight = counted(chunk.slot + chunk.held)});
    slots.push_back(chunk.slot);
    largest = std::max(largest, counted(chunk.slot));
    boundary = counted(chunk.boundary);
  }
  memory.slot = {.activation = largest, .gradient = boundary, .tied = 0};
  const std::vector<std::vector<int>> all = schedule::StagesOfRanks(ranks);
  for (int rank = 0; rank < ranks.ranks; ++rank) {
    const std::vector<int>& stages = all[rank];
    const int64_t fixed = PredictFixed(request, rank, stages).fixed();
    if (fixed > limit) {
      return TooMuch(rank, fixed, limit,
                     "for parameters, gradients, optimizer state and "
                     "workspace alone");
    }
    int64_t sends = 0;
    for (const int stage : stages) {
      if (fixed + slots[stage] > limit) {
        return TooMuch(rank, fixed + slots[stage], limit,
                       "with the activations of one micro-batch");
      }
      sends += stage + 1 < ranks.stages() && !ranks.same_rank(stage, stage + 1);
    }
    memory.limits.push_back(limit - fixed + sends * (largest - boundary));
  }
  return memory;
}

// The layers of each virtual stage. InvalidArgument as the partitioner says.
absl::StatusOr<std::vector<StageLayers>> PlanStages(
    const PlanRequest& request) {
  const int stages = request.ranks * request.chunks;
  const int64_t blocks = request.model.layers;
  if (request.partition.has_value()) {
    RETURN_IF_ERROR(CheckPartition(*request.partition, blocks, stages));
    return LayersOfStages(*request.partition);
  }
  const ModelCosts costs =
      AnalyticCosts(request.model, request.batch, request.recompute);
  ASSIGN_OR_RETURN(const std::vector<int64_t> partition,
                   BalancedPartition(costs, blocks, stages));
  return LayersOfStages(partition);
}

absl::StatusOr<schedule::Costs> CostsOf(
    const PlanRequest& request, const std::vector<StageLayers>& stages) {
  if (request.modelled.has_value()) {
    return ModelledCosts(*request.modelled,
                         {.ranks = request.ranks, .chunks = request.chunks},
                         request.model, request.batch);
  }
  return StageCosts(
      AnalyticCosts(request.model, request.batch, request.recompute), stages);
}

}  // namespace

schedule::Placement PlacementOf(const PlanRequest& request) {
  return request.given.has_value()
             ? request.given->placement
             : schedule::LoopPlacement(
                   {.ranks = request.ranks, .chunks = request.chunks});
}

absl::StatusOr<Plan> MakePlan(const PlanRequest& request) {
  RETURN_IF_ERROR(CheckSize(request));
  Plan plan;
  ASSIGN_OR_RETURN(plan.stages, PlanStages(request));
  ASSIGN_OR_RETURN(plan.costs, CostsOf(request, plan.stages));

  schedule::Schedule order;
  plan.schedule = request.schedule;
  if (request.given.has_value()) {
    order = *request.given;
    plan.schedule = absl::StrCat("file:", order.name);
  } else {
    absl::StatusOr<schedule::Schedule> made = schedule::Generate(
        request.schedule, {.ranks = request.ranks,
                           .chunks = request.chunks,
                           .micro_batches = request.micro_batches});
    if (!made.ok()) return Blame(made.status());
    order = *std::move(made);
  }
  if (request.modelled.has_value()) {
    RETURN_IF_ERROR(CheckSplit(*request.modelled, order));
  }

  const MemoryRequest memory = {.model = request.model,
                                .batch = request.batch,
                                .micro_batches = request.micro_batches,
                                .recompute = request.recompute,
                                .optimizer = request.optimizer,
                                .packed_bytes = request.packed_bytes,
                                .scratch_bytes = request.scratch_bytes,
                                .threads = request.threads,
                                .stages = plan.stages};
  schedule::LoweringOptions options{.tied_embedding = request.model.tied,
                                    .costs = plan.costs};
  const std::optional<int64_t> limit = Limit(request);
  if (limit.has_value()) {
    ASSIGN_OR_RETURN(options.memory,
                     SlotMemory(memory, order.placement, *limit));
  }
  absl::StatusOr<schedule::LoweredProgram> program =
      schedule::LowerVerified(order, options);
  if (!program.ok()) return Blame(program.status());
  plan.program = *std::move(program);

  plan.memory = PredictMemory(memory, plan.program);
  for (int rank = 0; rank < request.ranks && limit.has_value(); ++rank) {
    if (plan.memory[rank].total() > *limit) {
      return TooMuch(rank, plan.memory[rank].total(), *limit, "in all");
    }
  }
  ASSIGN_OR_RETURN(plan.predicted,
                   schedule::Simulate(plan.program, plan.costs));
  return plan;
}

}  // namespace penstock::coordinator::planner
