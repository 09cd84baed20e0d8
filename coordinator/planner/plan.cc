#include "coordinator/planner/plan.h"

#include <algorithm>
#include <iterator>
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
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/named_schedules.h"
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

bool IsAuto(const PlanRequest& request) {
  return !request.given.has_value() &&
         request.schedule ==
             schedule::FindSchedule(schedule::ScheduleKind::kAuto)->name;
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
  const int64_t stages = int64_t{request.ranks} * FewestChunks(request);
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

// What slots and buffers take, and what is left of the limit for them on each
// rank. Sizes that the schedule room does not count are cut to its largest:
// only CheckLimit sees all of them.
absl::StatusOr<schedule::Memory> SlotMemory(const MemoryRequest& request,
                                            const schedule::Placement& ranks,
                                            int64_t limit) {
  schedule::Memory memory = SlotSizes(request);
  const std::vector<std::vector<int>> stages = schedule::StagesOfRanks(ranks);
  for (int rank = 0; rank < ranks.ranks; ++rank) {
    const int64_t fixed = PredictFixed(request, rank, stages[rank]).fixed();
    if (fixed > limit) {
      return TooMuch(rank, fixed, limit,
                     "for parameters, gradients, optimizer state and "
                     "workspace alone");
    }
    int64_t slots = 0;  // One of each stage.
    for (const int stage : stages[rank]) {
      slots += memory.stages[stage].held_until_input;
    }
    if (fixed + slots > limit) {
      return TooMuch(rank, fixed + slots, limit,
                     "with the activations of one micro-batch");
    }
    memory.limits.push_back(limit - fixed);
  }
  const auto cut = [](int64_t* bytes) {
    *bytes = std::min(*bytes, schedule::kMaxBytes);
  };
  for (schedule::StageBytes& stage : memory.stages) {
    cut(&stage.held_until_input);
    cut(&stage.held_until_weight);
  }
  cut(&memory.slot.activation);
  cut(&memory.slot.gradient);
  return memory;
}

// The layers of each virtual stage. InvalidArgument as the partitioner says.
absl::StatusOr<std::vector<StageLayers>> PlanStages(const PlanRequest& request,
                                                    int stages) {
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

// In seconds where times are modelled, else in operations.
absl::StatusOr<schedule::Costs> CostsOf(
    const PlanRequest& request, const schedule::Placement& placement,
    const std::vector<StageLayers>& stages) {
  if (request.modelled.has_value()) {
    return ModelledCosts(*request.modelled,
                         {.ranks = placement.ranks,
                          .chunks = placement.stages() / placement.ranks},
                         request.model, request.batch);
  }
  return StageCosts(
      AnalyticCosts(request.model, request.batch, request.recompute), stages);
}

// One way to lay the model out on the ranks, and what an order of it takes.
struct Layout {
  schedule::Placement placement;
  MemoryRequest memory;  // With the layers of each stage.
  schedule::LoweringOptions options;
};

absl::StatusOr<Layout> LayOut(const PlanRequest& request,
                              const schedule::Placement& placement) {
  Layout layout{.placement = placement,
                .memory = {.model = request.model,
                           .batch = request.batch,
                           .micro_batches = request.micro_batches,
                           .recompute = request.recompute,
                           .optimizer = request.optimizer,
                           .packed_bytes = request.packed_bytes,
                           .scratch_bytes = request.scratch_bytes,
                           .threads = request.threads},
                .options = {.tied_embedding = request.model.tied}};
  ASSIGN_OR_RETURN(layout.memory.stages,
                   PlanStages(request, placement.stages()));
  ASSIGN_OR_RETURN(layout.options.costs,
                   CostsOf(request, placement, layout.memory.stages));
  if (const std::optional<int64_t> limit = Limit(request)) {
    ASSIGN_OR_RETURN(layout.options.memory,
                     SlotMemory(layout.memory, placement, *limit));
  }
  return layout;
}

// REQUIRES: not `auto`.
schedule::Placement PlacementOf(const PlanRequest& request) {
  if (request.given.has_value()) return request.given->placement;
  const schedule::RankShape shape{.ranks = request.ranks,
                                  .chunks = request.chunks};
  const schedule::NamedSchedule* const named =
      schedule::FindSchedule(request.schedule);
  return named == nullptr ? schedule::LoopPlacement(shape)
                          : schedule::PlacementOf(*named, shape);
}

// The plan of a layout whose order is proved.
struct ProvedOrder {
  Layout layout;
  schedule::LoweredProgram program;
  std::string found;  // By `auto`.
};

absl::StatusOr<ProvedOrder> ProveOrder(const PlanRequest& request) {
  ProvedOrder proved;
  ASSIGN_OR_RETURN(proved.layout, LayOut(request, PlacementOf(request)));
  absl::StatusOr<schedule::Schedule> order =
      request.given.has_value()
          ? *request.given
          : schedule::Generate(request.schedule,
                               {.ranks = request.ranks,
                                .chunks = request.chunks,
                                .micro_batches = request.micro_batches});
  if (!order.ok()) return Blame(order.status());
  if (request.modelled.has_value()) {
    RETURN_IF_ERROR(CheckSplit(*request.modelled, *order));
  }
  absl::StatusOr<schedule::LoweredProgram> program =
      schedule::LowerVerified(*order, proved.layout.options);
  if (!program.ok()) return Blame(program.status());
  proved.program = *std::move(program);
  return proved;
}

// With a partition those of as many stages as it has; else those that `auto`
// tries, as far as there are layers. Never none: what does not suit is refused.
std::vector<schedule::Placement> PlacementsToTry(const PlanRequest& request) {
  const int64_t most_stages = request.partition.has_value()
                                  ? std::ssize(*request.partition)
                                  : request.model.layers + 2;
  const auto chunks = static_cast<int>(
      std::clamp<int64_t>(most_stages / request.ranks, 1, request.chunks));
  if (request.partition.has_value()) {
    return schedule::PlacementsOf({.ranks = request.ranks, .chunks = chunks});
  }
  return schedule::PlacementsToTry({.ranks = request.ranks,
                                    .chunks = chunks,
                                    .micro_batches = request.micro_batches});
}

absl::Status CheckLimit(const PlanRequest& request,
                        const std::vector<RankMemory>& memory) {
  const std::optional<int64_t> limit = Limit(request);
  if (!limit.has_value()) return absl::OkStatus();
  for (int rank = 0; rank < static_cast<int>(memory.size()); ++rank) {
    const int64_t needed = memory[rank].total();
    if (needed > *limit) return TooMuch(rank, needed, *limit, "in all");
  }
  return absl::OkStatus();
}

absl::StatusOr<ProvedOrder> SearchOrder(const PlanRequest& request) {
  std::vector<Layout> layouts;
  std::vector<schedule::AutoChoice> choices;
  absl::Status refused;  // The first, of a layout that does not fit.
  for (const schedule::Placement& placement : PlacementsToTry(request)) {
    absl::StatusOr<Layout> layout = LayOut(request, placement);
    if (!layout.ok()) {
      refused.Update(layout.status());
      continue;
    }
    choices.push_back(
        {.placement = layout->placement, .options = layout->options});
    if (request.modelled.has_value()) {
      choices.back().accepts = [&request](const schedule::Schedule& order) {
        return CheckSplit(*request.modelled, order);
      };
    }
    layouts.push_back(*std::move(layout));
  }
  if (layouts.empty()) return refused;
  absl::StatusOr<schedule::AutoSchedule> found =
      schedule::MakeAutoSchedule(request.micro_batches, choices);
  if (!found.ok()) return Blame(found.status());
  return ProvedOrder{.layout = std::move(layouts[found->choice]),
                     .program = std::move(found->program),
                     .found = std::move(found->order)};
}

}  // namespace

int FewestChunks(const PlanRequest& request) {
  return IsAuto(request) ? 1 : request.chunks;
}

absl::StatusOr<StageMap> MapForChecks(const PlanRequest& request) {
  StageMap map;
  if (!IsAuto(request)) {
    map.placement = PlacementOf(request);
    ASSIGN_OR_RETURN(map.stages, PlanStages(request, map.placement.stages()));
    return map;
  }
  PlanRequest loop = request;
  loop.partition.reset();
  map.placement =
      schedule::LoopPlacement({.ranks = request.ranks, .chunks = 1});
  ASSIGN_OR_RETURN(map.stages, PlanStages(loop, map.placement.stages()));
  return map;
}

absl::StatusOr<Plan> MakePlan(const PlanRequest& request) {
  RETURN_IF_ERROR(CheckSize(request));
  ASSIGN_OR_RETURN(ProvedOrder proved, IsAuto(request) ? SearchOrder(request)
                                                       : ProveOrder(request));
  Plan plan{.schedule = request.given.has_value()
                            ? absl::StrCat("file:", request.given->name)
                            : request.schedule,
            .found = std::move(proved.found),
            .stages = proved.layout.memory.stages,
            .program = std::move(proved.program),
            .costs = std::move(proved.layout.options.costs)};
  plan.memory = PredictMemory(proved.layout.memory, plan.program);
  RETURN_IF_ERROR(CheckLimit(request, plan.memory));
  ASSIGN_OR_RETURN(plan.predicted,
                   schedule::Simulate(plan.program, plan.costs));
  return plan;
}

}  // namespace penstock::coordinator::planner
