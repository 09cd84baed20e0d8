#include "coordinator/planner/memory_model.h"

#include <algorithm>

#include "common/log/log.h"
#include "coordinator/schedule/memory_use.h"

namespace penstock::coordinator::planner {
namespace {

using schedule::EdgeKind;
using schedule::LoweredStep;
using schedule::Op;
using schedule::StepKind;

constexpr int64_t kWord = 4, kLong = 8;
constexpr int64_t kUpdateScalars = 4;

int StateTensors(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return 2;
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kSgdMomentum:
      return 1;
  }
  CHECK(false) << "unknown optimizer";
  return 0;
}

// Sums over the groups that a rank holds.
struct ParameterBytes {
  int64_t version = 0;  // Weights once.
  int64_t gradients = 0;
  int64_t packed = 0;
  int64_t owned = 0;  // Canonical parameters.

  void Add(const ParameterGroup& group, const PackedBytes& packed_bytes,
           int64_t times) {
    const int64_t bytes = Aligned(group.elements * kWord);
    version += times * bytes;
    gradients += times * bytes;
    owned += times * group.tensors;
    AddPacked(group, packed_bytes, times);
  }
  void AddPacked(const ParameterGroup& group, const PackedBytes& packed_bytes,
                 int64_t times) {
    if (group.in == 0 || packed_bytes == nullptr) return;
    packed += times * Aligned(packed_bytes(group.in, group.out));
  }
};

ParameterBytes CountBytes(const MemoryRequest& request,
                          absl::Span<const int> stages) {
  const ModelShape& model = request.model;
  ParameterBytes bytes;
  bool embedding = false, head = false;
  int64_t blocks = 0;
  for (const int stage : stages) {
    embedding |= request.stages[stage].embedding;
    head |= request.stages[stage].head;
    blocks += request.stages[stage].blocks();
  }
  if (embedding) {
    for (const ParameterGroup& group : EmbeddingGroups(model)) {
      bytes.Add(group, request.packed_bytes, 1);
    }
  }
  for (const ParameterGroup& group : BlockGroups(model)) {
    bytes.Add(group, request.packed_bytes, blocks);
  }
  if (head) {
    std::vector<ParameterGroup> groups = HeadGroups(model);
    const ParameterGroup projection = groups.back();
    groups.pop_back();
    for (const ParameterGroup& group : groups) {
      bytes.Add(group, request.packed_bytes, 1);
    }
    if (model.tied && embedding) {
      bytes.AddPacked(projection, request.packed_bytes, 1);
    } else {
      bytes.Add(projection, request.packed_bytes, 1);
      if (model.tied) bytes.owned -= projection.tensors;  // A copy.
    }
  }
  // The head's gradient of a tied embedding comes to the embedding's rank.
  if (model.tied && embedding) {
    bytes.gradients += Aligned(model.vocab * model.width * kWord);
  }
  return bytes;
}

RankOps OpsOf(const MemoryRequest& request, int rank,
              absl::Span<const int> stages) {
  RankOps ops;
  if (!request.threads.empty()) ops.threads = request.threads[rank];
  const auto add = [&ops](const std::vector<ParameterGroup>& groups) {
    for (const ParameterGroup& group : groups) {
      if (group.in != 0) ops.products.push_back(group);
      ops.largest_parameter = std::max(ops.largest_parameter, group.largest);
    }
  };
  for (const int stage : stages) {
    const StageLayers& layers = request.stages[stage];
    if (layers.embedding) add(EmbeddingGroups(request.model));
    if (layers.blocks() > 0 && !ops.blocks) {
      ops.blocks = true;
      add(BlockGroups(request.model));
    }
    if (!layers.head) continue;
    ops.head = true;
    std::vector<ParameterGroup> groups = HeadGroups(request.model);
    if (request.model.tied) groups.back().largest = 0;  // The embedding's.
    add(groups);
  }
  return ops;
}

// What is in flight while the rank runs its order.
void CountActivations(const schedule::LoweredProgram& program, int rank,
                      const std::vector<ChunkMemory>& chunks,
                      RankMemory& memory) {
  int in_flight = 0;
  int64_t bytes = 0;
  for (const LoweredStep& step : program.steps[rank]) {
    if (step.kind != StepKind::kCompute) continue;
    const ChunkMemory& chunk = chunks[step.command.stage];
    if (step.command.op == Op::kForward) {
      memory.peak_in_flight = std::max(memory.peak_in_flight, ++in_flight);
      bytes += chunk.slot;
    } else if (step.command.op == Op::kBackwardInput) {
      bytes += chunk.held;
    }
    memory.peak_activation_bytes =
        std::max(memory.peak_activation_bytes, bytes);
    if (!step.releases_stash()) continue;
    --in_flight;
    bytes -= chunk.slot;
    if (step.command.op == Op::kBackwardWeight) bytes -= chunk.held;
  }
}

}  // namespace

RankMemory PredictFixed(const MemoryRequest& request, int rank,
                        absl::Span<const int> stages) {
  const ParameterBytes bytes = CountBytes(request, stages);
  RankMemory memory;
  memory.parameters = 2 * bytes.version + bytes.packed +
                      Aligned(kUpdateScalars * kWord) +
                      Aligned(bytes.owned * kLong);
  memory.gradients = bytes.gradients;
  memory.optimizer = 2 * StateTensors(request.optimizer) * bytes.version;
  int64_t constants = 0;
  for (const int stage : stages) {
    const StageLayers& layers = request.stages[stage];
    const ChunkMemory chunk =
        PredictChunk(request.model, request.batch, layers, request.recompute);
    memory.workspace = std::max(memory.workspace, chunk.workspace);
    constants += chunk.constants;
    if (layers.head) {
      // Loss and valid tokens of each sequence of a step.
      constants +=
          request.micro_batches * request.batch.micro_batch * 2 * kLong;
    }
  }
  memory.workspace += constants;
  if (request.scratch_bytes != nullptr) {
    memory.workspace += request.scratch_bytes(request.model, request.batch,
                                              OpsOf(request, rank, stages));
  }
  return memory;
}

int HeldSlots(const schedule::LoweredProgram& program, int stage) {
  int held = 0, most = 0;
  for (const LoweredStep& step :
       program.steps[program.placement.rank_of(stage)]) {
    if (step.kind != StepKind::kCompute || step.command.stage != stage) {
      continue;
    }
    if (step.command.op == Op::kBackwardInput) most = std::max(most, ++held);
    if (step.command.op == Op::kBackwardWeight) --held;
  }
  return most;
}

std::vector<RankMemory> PredictMemory(const MemoryRequest& request,
                                      const schedule::LoweredProgram& program) {
  std::vector<ChunkMemory> chunks;
  for (const StageLayers& layers : request.stages) {
    chunks.push_back(
        PredictChunk(request.model, request.batch, layers, request.recompute));
  }
  const std::vector<schedule::RankParts> parts =
      schedule::PartsOfRanks(program);
  std::vector<RankMemory> ranks;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const std::vector<int>& stages = parts[rank].stages;
    RankMemory memory = PredictFixed(request, rank, stages);
    for (const int stage : stages) {
      const ChunkMemory& chunk = chunks[stage];
      memory.activation_slots += program.stages[stage].slots * chunk.slot +
                                 HeldSlots(program, stage) * chunk.held;
      memory.transfer_slots +=
          program.stages[stage].local_gradient_slots * chunk.boundary;
    }
    for (const int e : parts[rank].sends) {
      const schedule::Edge& edge = program.edges[e];
      const bool tied = edge.kind == EdgeKind::kTiedGradient ||
                        edge.kind == EdgeKind::kTiedSum;
      if (tied) continue;
      memory.transfer_slots +=
          edge.send_buffers * chunks[edge.source_stage].boundary;
    }
    for (const int e : parts[rank].receives) {
      const schedule::Edge& edge = program.edges[e];
      if (edge.kind != EdgeKind::kGradient) continue;
      memory.transfer_slots +=
          edge.capacity * chunks[edge.source_stage].boundary;
    }
    CountActivations(program, rank, chunks, memory);
    ranks.push_back(memory);
  }
  return ranks;
}

}  // namespace penstock::coordinator::planner
